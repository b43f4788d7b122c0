-- What was said on calls that agents took, who paid for the AI, and what its models cost. No foreign keys: a
-- conversation may be told of before the call's record is there, and outlives what it names.

CREATE TABLE conversations (
    id TEXT NOT NULL PRIMARY KEY,
    organisation_id TEXT NOT NULL,
    call_uuid TEXT NOT NULL,
    direction TEXT NOT NULL,
    started_at_us BIGINT NOT NULL,
    ended_at_us BIGINT,
    agent_id TEXT,
    agent_kind TEXT NOT NULL,
    contact_id TEXT,
    contact_e164 TEXT,
    summary TEXT,
    -- All null when a person handled the call.
    provider TEXT,
    model TEXT,
    ai_billing_mode TEXT,
    virtual_agent_profile_id TEXT,
    virtual_agent_profile_name TEXT,
    tokens_input BIGINT,
    tokens_output BIGINT,
    tokens_audio BIGINT,
    audio_split_known BIGINT,
    assembled_context TEXT,
    -- What the review after the call goes by, and what it found: JSON.
    profile TEXT NOT NULL,
    flags TEXT NOT NULL,
    -- Settled when the conversation completes and never changed.
    sell_scaled BIGINT,
    sell_currency TEXT,
    cost_scaled BIGINT,
    cost_currency TEXT,
    created_at_us BIGINT NOT NULL,
    updated_at_us BIGINT NOT NULL,
    UNIQUE (call_uuid, organisation_id)
);

CREATE TABLE conversation_turns (
    conversation_id TEXT NOT NULL,
    organisation_id TEXT NOT NULL,
    seq BIGINT NOT NULL,
    at_us BIGINT NOT NULL,
    role TEXT NOT NULL,
    speaker TEXT NOT NULL,
    text TEXT NOT NULL,
    tool_name TEXT,
    tool_args TEXT,
    tool_result TEXT,
    PRIMARY KEY (conversation_id, seq)
);

-- Per 1,000,000 tokens. An empty organisation_id is every organisation; is_prefix says whether model is the
-- beginning of a name or all of it.
CREATE TABLE ai_prices (
    id TEXT NOT NULL PRIMARY KEY,
    kind TEXT NOT NULL,
    organisation_id TEXT NOT NULL,
    provider TEXT NOT NULL,
    model TEXT NOT NULL,
    is_prefix BIGINT NOT NULL,
    text_input_scaled BIGINT NOT NULL,
    audio_input_scaled BIGINT,
    output_scaled BIGINT NOT NULL,
    currency TEXT NOT NULL,
    from_time_us BIGINT NOT NULL,
    to_time_us BIGINT,
    created_at_us BIGINT NOT NULL,
    updated_at_us BIGINT NOT NULL,
    UNIQUE (provider, model, is_prefix, kind, organisation_id, from_time_us)
);

-- Kept in step with the conversation of the call.
ALTER TABLE cdrs ADD COLUMN ai_tokens BIGINT;

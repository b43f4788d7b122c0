-- The device (User-Agent) and the network (/24 or /64) of both parties of a call; NULL in records from before, and where
-- a party is a conference room or sent no User-Agent. There is no index: most records share their values with many
-- others, and the filters need a time to begin at.
ALTER TABLE cdrs ADD COLUMN user_agent_a TEXT;
ALTER TABLE cdrs ADD COLUMN network_a TEXT;
ALTER TABLE cdrs ADD COLUMN user_agent_b TEXT;
ALTER TABLE cdrs ADD COLUMN network_b TEXT;

// The directory of the tests: two tenants and the operator.

/** The SIP domain of Acme. */
export const DOMAIN = "acme.test";
/** The password of every phone and user. */
export const PASSWORD = "correct horse battery staple";
/** Every permission within Acme. */
export const FULL_KEY = "tel_browsertests_0123456789abcdefghijklmnopqrstuvwxyz";

/** The users by role. */
export const USERS = {
  admin: "boss@acme.test",
  supervisor: "eve@acme.test",
  agent: "bob@acme.test",
  foreign: "boss@bolt.test",
  operator: "root@platform.test",
  // The admin of the hostile texts, so that each user has its own request rate.
  reader: "reader@acme.test",
  // The user whose sessions are ended.
  leaver: "leaver@acme.test",
};

const extension = (number, name, team) =>
  `[[organisations.extensions]]\nnumber = "${number}"\nname = "${name}"\npassword = "${PASSWORD}"\n${team ? `team = "${team}"\n` : ""}`;
const user = (email, name, role, team) =>
  `[[organisations.users]]\nemail = "${email}"\nname = "${name}"\npassword = "${PASSWORD}"\nrole = "${role}"\n${team ? `team = "${team}"\n` : ""}`;

export const DIRECTORY = `
[[organisations]]
name = "Acme"
sip_domain = "acme.test"
currency = "EUR"
country_code = "44"
[[organisations.teams]]
name = "support"
[[organisations.teams]]
name = "sales"
${extension("1001", "Ada", "support")}
${extension("1002", "Ben", "support")}
${extension("1003", "Cleo", "sales")}
${extension("1004", "Dan", "sales")}
${extension("1005", "Eli", "support")}
${extension("1006", "Fay", "support")}
${extension("1007", "Gus", "support")}
${extension("1008", "Hal", "support")}
${user(USERS.admin, "Boss", "org_admin")}
${user(USERS.supervisor, "Eve", "team_supervisor", "support")}
${user(USERS.agent, "Bob", "agent", "support")}
${user(USERS.reader, "Reader", "org_admin")}
${user(USERS.leaver, "Leaver", "org_admin")}
[[organisations.rooms]]
name = "Stand-up"
number = "300"
participant_pin = ""
moderator_pin = "9876"
[[organisations.numbers]]
number = "+442071230000"
destination = { extension = "1001" }
[[organisations.api_keys]]
name = "tests"
key = "${FULL_KEY}"
preset = "full"
allow = ["127.0.0.1"]
rate_per_minute = 60000
[[organisations]]
name = "Bolt"
sip_domain = "bolt.test"
[[organisations.teams]]
name = "support"
${extension("1001", "Zoe", "support")}
${user(USERS.foreign, "Bolt's boss", "org_admin")}
[[organisations]]
name = "Platform"
sip_domain = "platform.test"
${user(USERS.operator, "Root", "operator")}
[[trunks]]
name = "carrier"
organisation = "Acme"
address = "sip:CARRIER"
qualify_seconds = 10
`;

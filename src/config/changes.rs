//! Which changes of the file apply at once, and which wait for a restart.

use crate::config::settings::{Config, Http, Log, Media, Node, Sip};

impl Config {
    /// Returns the configuration with everything of `new` that applies without a restart, and the keys that
    /// need one.
    ///
    /// Sockets, files, threads and the database stay as they were opened. Every field is destructured here,
    /// so that a new one must be assigned to one of the two groups.
    pub fn reloaded(&self, new: &Config) -> (Config, Vec<&'static str>) {
        let mut config = self.clone();
        let mut waiting = Vec::new();
        let mut cold = |key: &'static str, same: bool| {
            if !same {
                waiting.push(key);
            }
        };

        let Node { name, data_dir, drain, journal_reserve_bytes } = &new.node;
        cold("[node] name", *name == self.node.name);
        cold("[node] data_dir", *data_dir == self.node.data_dir);
        cold("[node] journal_reserve_mb", *journal_reserve_bytes == self.node.journal_reserve_bytes);
        config.node.drain = *drain;

        cold("[database]", new.database == self.database);

        let Sip {
            listen,
            external_address,
            digest,
            md5_only,
            allow_trunk_addresses,
            dns,
            admission,
            max_call,
            session_expires,
            min_se,
        } = &new.sip;
        cold("[sip] listen", *listen == self.sip.listen);
        cold("[sip] external_address", *external_address == self.sip.external_address);
        cold("[sip] allow_trunk_addresses", *allow_trunk_addresses == self.sip.allow_trunk_addresses);
        cold("[sip] dns", *dns == self.sip.dns);
        cold(
            "[sip] requests_per_source, burst_per_source, requests_of_strangers",
            *admission == self.sip.admission,
        );
        config.sip.digest.clone_from(digest);
        cold("[sip] session_expires_seconds", *session_expires == self.sip.session_expires);
        cold("[sip] min_se_seconds", *min_se == self.sip.min_se);
        config.sip.md5_only.clone_from(md5_only);
        config.sip.max_call = *max_call;

        let Media {
            ports,
            workers,
            strict_source,
            verdict,
            audio_evidence,
            trace,
            trace_days,
            timeout,
            hold_timeout,
        } = &new.media;
        cold("[media] ports", *ports == self.media.ports);
        cold("[media] workers", *workers == self.media.workers);
        cold("[media] audio_evidence", *audio_evidence == self.media.audio_evidence);
        config.media.strict_source = *strict_source;
        config.media.verdict = verdict.clone();
        config.media.trace = *trace;
        config.media.trace_days = *trace_days;
        config.media.timeout = *timeout;
        config.media.hold_timeout = *hold_timeout;

        let Http { listen, settings } = &new.http;
        cold("[http] listen", *listen == self.http.listen);
        config.http.settings = settings.clone();

        cold("[outbound_http]", new.outbound_http == self.outbound_http);
        cold("[rating]", new.rating == self.rating);
        cold("[ai]", new.ai == self.ai);
        cold("[recordings]", new.recordings == self.recordings);
        cold("[rooms]", new.rooms == self.rooms);
        cold("[tap]", new.tap == self.tap);

        let Log { level } = &new.log;
        config.log.level.clone_from(level);
        (config, waiting)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn what_can_hold_holds_and_the_rest_is_named() {
        let old = Config::default();
        assert_eq!(old.reloaded(&old), (old.clone(), vec![]));
        let mut new = old.clone();
        new.node.drain = Duration::from_secs(1);
        new.http.settings.connections_max = 7;
        new.sip.md5_only.clear();
        new.log.level = Some("debug".to_owned());
        let hot = new.clone();
        assert_eq!(old.reloaded(&new), (hot.clone(), vec![]));
        new.node.name = "other".to_owned();
        new.http.listen = "127.0.0.1:1".parse().unwrap();
        new.sip.listen.clear();
        new.media.workers = Some(3);
        let waiting = vec!["[node] name", "[sip] listen", "[media] workers", "[http] listen"];
        assert_eq!(old.reloaded(&new), (hot, waiting));
    }
}

//! Which changes of the file apply immediately, and which need a restart.

use crate::config::settings::{Config, Http, Log, Media, Node, Sip, Tap};

impl Config {
    /// Returns the configuration with everything of `new` that applies without a restart, and the keys that
    /// need one.
    ///
    /// Sockets, files, threads and the database stay as they were opened. Every field of a section with both kinds
    /// is destructured, so that a new one must be assigned to one of the two groups.
    pub fn reloaded(&self, new: &Config) -> (Config, Vec<&'static str>) {
        let mut reload = Reload { old: self, config: self.clone(), waiting: Vec::new() };
        reload.node(&new.node);
        reload.cold("[database]", new.database == self.database);
        reload.sip(&new.sip);
        reload.media(&new.media);
        reload.http(&new.http);
        reload.cold("[panel]", new.panel == self.panel);
        reload.config.tls.clone_from(&new.tls);
        reload.cold("[outbound_http]", new.outbound_http == self.outbound_http);
        reload.cold("[rating]", new.rating == self.rating);
        reload.cold("[ai]", new.ai == self.ai);
        reload.cold("[recordings]", new.recordings == self.recordings);
        reload.cold("[rooms]", new.rooms == self.rooms);
        reload.cold("[hep]", new.hep == self.hep);
        reload.cold("[signalling]", new.signalling == self.signalling);
        reload.cold("[tap]", new.tap == self.tap);
        reload.cold("[cluster]", new.cluster == self.cluster);
        let Log { level } = &new.log;
        reload.config.log.level.clone_from(level);
        (reload.config, reload.waiting)
    }

    /// The same for `sidetone tap`, which applies the thresholds of its verdicts and uses only some sections.
    pub fn reloaded_by_tap(&self, new: &Config) -> (Config, Vec<&'static str>) {
        let (mut config, mut waiting) = self.reloaded(new);
        waiting.retain(|key| COLD_OF_TAP.contains(key));
        let Tap { organisation, verdict } = &new.tap;
        config.tap.verdict.clone_from(verdict);
        if *organisation != self.tap.organisation {
            waiting.push("[tap] organisation");
        }
        (config, waiting)
    }
}

/// The keys that a tap reads at its start only.
const COLD_OF_TAP: [&str; 8] = [
    "[node] name",
    "[node] data_dir",
    "[node] journal_reserve_mb",
    "[database]",
    "[http] listen",
    "[http] tls",
    "[panel]",
    "[outbound_http]",
];

/// A configuration that is being reloaded.
struct Reload<'c> {
    old: &'c Config,
    /// The old configuration with the changes that apply immediately.
    config: Config,
    /// The keys that need a restart.
    waiting: Vec<&'static str>,
}

impl Reload<'_> {
    /// Lists a key that needs a restart, unless its value is the `same`.
    fn cold(&mut self, key: &'static str, same: bool) {
        if !same {
            self.waiting.push(key);
        }
    }

    fn node(&mut self, new: &Node) {
        let Node { name, data_dir, drain, journal_reserve_bytes, busy } = new;
        let old = &self.old.node;
        self.cold("[node] name", *name == old.name);
        self.cold("[node] data_dir", *data_dir == old.data_dir);
        self.cold("[node] journal_reserve_mb", *journal_reserve_bytes == old.journal_reserve_bytes);
        self.cold("[node] busy_cpu_percent, busy_late_percent", *busy == old.busy);
        self.config.node.drain = *drain;
    }

    fn sip(&mut self, new: &Sip) {
        let Sip {
            listen,
            external_address,
            digest,
            md5_only,
            allow_trunk_addresses,
            dns,
            websocket_origins,
            admission,
            max_call,
            qualify,
            session_expires,
            min_se,
        } = new;
        let old = &self.old.sip;
        self.cold("[sip] listen", *listen == old.listen);
        self.cold("[sip] external_address", *external_address == old.external_address);
        self.cold("[sip] allow_trunk_addresses", *allow_trunk_addresses == old.allow_trunk_addresses);
        self.cold("[sip] dns", *dns == old.dns);
        self.cold("[sip] websocket_origins", *websocket_origins == old.websocket_origins);
        let rates = "[sip] requests_per_source, burst_per_source, requests_of_strangers";
        self.cold(rates, *admission == old.admission);
        self.cold("[sip] qualify_seconds", *qualify == old.qualify);
        self.cold("[sip] session_expires_seconds", *session_expires == old.session_expires);
        self.cold("[sip] min_se_seconds", *min_se == old.min_se);
        self.config.sip.digest.clone_from(digest);
        self.config.sip.md5_only.clone_from(md5_only);
        self.config.sip.max_call = *max_call;
    }

    fn media(&mut self, new: &Media) {
        let Media {
            ports,
            workers,
            io,
            strict_source,
            verdict,
            real_time,
            audio_evidence,
            trace,
            trace_days,
            timeout,
            hold_timeout,
        } = new;
        let old = &self.old.media;
        self.cold("[media] ports", *ports == old.ports);
        self.cold("[media] workers", *workers == old.workers);
        self.cold("[media] io", *io == old.io);
        self.cold("[media] real_time", *real_time == old.real_time);
        self.cold("[media] audio_evidence", *audio_evidence == old.audio_evidence);
        let media = &mut self.config.media;
        media.strict_source = *strict_source;
        media.verdict = verdict.clone();
        media.trace = *trace;
        media.trace_days = *trace_days;
        media.timeout = *timeout;
        media.hold_timeout = *hold_timeout;
    }

    fn http(&mut self, new: &Http) {
        let Http { listen, tls, settings } = new;
        self.cold("[http] listen", *listen == self.old.http.listen);
        self.cold("[http] tls", *tls == self.old.http.tls);
        self.config.http.settings = settings.clone();
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

    #[test]
    fn a_tap_takes_its_thresholds_and_names_only_what_it_uses() {
        let old = Config::default();
        let mut new = old.clone();
        new.tap.verdict.set("loss_pct", 9.0).unwrap();
        let hot = new.clone();
        new.tap.organisation = Some("Acme".to_owned());
        new.sip.listen.clear();
        new.http.listen = "127.0.0.1:1".parse().unwrap();
        assert_eq!(old.reloaded_by_tap(&new), (hot, vec!["[http] listen", "[tap] organisation"]));
    }
}

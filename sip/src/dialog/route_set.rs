//! The route set of a dialog: the proxies that requested to stay in its path (RFC 3261 §12.1, §12.2.1.1,
//! §16.12.1).

use crate::message::{Malformed, NameAddr, Request, Response, Uri};

/// An ordered list of proxies, the nearest one first; empty for two agents that communicate directly.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RouteSet {
    routes: Vec<NameAddr>,
}

impl RouteSet {
    /// The route set of a UAS: Record-Route in its own order (§12.1.1).
    ///
    /// # Errors
    ///
    /// When a Record-Route cannot be read.
    pub fn of_request(request: &Request) -> Result<Self, Malformed> {
        Ok(Self { routes: request.record_routes().map_err(|_| Malformed("Record-Route"))? })
    }

    /// The route set of a UAC: Record-Route in reverse order (§12.1.2).
    ///
    /// # Errors
    ///
    /// When a Record-Route cannot be read.
    pub fn of_response(response: &Response) -> Result<Self, Malformed> {
        let mut routes = response.record_routes().map_err(|_| Malformed("Record-Route"))?;
        routes.reverse();
        Ok(Self { routes })
    }

    /// A preset route set, from Service-Route or an outbound proxy.
    pub fn new(routes: Vec<NameAddr>) -> Self {
        Self { routes }
    }

    /// The Request-URI and the Route headers of a request to `target` (§12.2.1.1).
    pub fn apply(&self, target: &Uri) -> (Uri, Vec<NameAddr>) {
        match self.routes.split_first() {
            None => (target.clone(), Vec::new()),
            Some((first, _)) if first.uri.param("lr").is_some() => (target.clone(), self.routes.clone()),
            // A strict router of RFC 2543 requires itself in the Request-URI and the target at the end.
            Some((first, rest)) => {
                let mut uri = first.uri.clone();
                uri.clear_headers();
                uri.params_mut().remove("method");
                let routes = rest.iter().cloned().chain([NameAddr::new(target.clone())]).collect();
                (uri, routes)
            }
        }
    }

    /// The first hop of a request to `target`.
    pub fn next_hop<'a>(&'a self, target: &'a Uri) -> &'a Uri {
        self.routes.first().map_or(target, |first| &first.uri)
    }

    /// Whether there are no proxies in the path.
    pub fn is_empty(&self) -> bool {
        self.routes.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loose_and_strict_routing_as_in_16_12_1() {
        let target = Uri::parse("sip:callee@u2.domain.com").unwrap();
        let routes =
            |texts: &[&str]| RouteSet::new(texts.iter().map(|text| NameAddr::parse(text).unwrap()).collect());
        for (name, set, uri, expected) in [
            ("none", routes(&[]), "sip:callee@u2.domain.com", vec![]),
            (
                "loose",
                routes(&["<sip:p1.example.com;lr>", "<sip:p2.domain.com;lr>"]),
                "sip:callee@u2.domain.com",
                vec!["<sip:p1.example.com;lr>", "<sip:p2.domain.com;lr>"],
            ),
            (
                "strict first",
                routes(&["<sip:p1.example.com?X=1>", "<sip:p2.domain.com;lr>"]),
                "sip:p1.example.com",
                vec!["<sip:p2.domain.com;lr>", "<sip:callee@u2.domain.com>"],
            ),
        ] {
            let (request_uri, route) = set.apply(&target);
            let route: Vec<_> = route.iter().map(ToString::to_string).collect();
            assert_eq!(
                (request_uri.to_string().as_str(), route),
                (uri, expected.iter().map(ToString::to_string).collect()),
                "{name}"
            );
        }
    }
}

// Package stale keeps the last good response of each resource in bounded memory, so that the proxy has something to
// give when a service cannot answer: RFC 5861's stale-if-error. It is no cache: a service that answers is always asked.
//
// The life of a response: [Asks] reports whether its request may use the store at all, [AppendKey] names the resource,
// [Store.Record] hands out a [Recorder] that collects the body on its way to the client, and [Recorder.Commit] makes it
// the one that [Store.Get] gives. Nothing here reads a clock.
//
// # What is kept
//
// The store is shared by all clients of the proxy, so it follows the rules for shared caches (RFC 9111), and is
// stricter where a mistake would give one client's data to another:
//
//   - Requests: GET only, without content and without fields that tell who is asking: Authorization, Cookie and every
//     field whose name ends in key, token, secret, session or assertion. What else tells a client or tenant is part of
//     the key: [AppendIdentity]. A field that it names may be one of those above; the caller answers for that.
//   - Responses: 200 only, with nothing meant for one client (Set-Cookie, private, challenges), no no-store or
//     no-cache, and no directives that cannot be read. Whether others than the client may get it is the caller's to
//     judge: [Shared] tells what the response says.
//
// # For how long
//
// The caller says how old an answer may be. The response can only shorten that. stale-if-error=N ends its use N seconds
// after it was fresh (RFC 5861 section 4); must-revalidate, proxy-revalidate, and s-maxage without stale-if-error end
// it with its freshness (RFC 9111 sections 5.2.2.2, 5.2.2.8, 5.2.2.10). Freshness is s-maxage or else max-age; Expires
// is not read, which errs on the short side. Of the request's own directives no-store and no-cache are obeyed; the
// others are preferences about answers of a service that works.
package stale

// Package nginx reads configurations of nginx: which upstream a location passes its requests to, and how often.
//
// What nginx repeats depends on three things that stand in three places: the words of proxy_next_upstream, the number
// of servers of the upstream (one server is tried once, whatever the words say), and whether the request is a POST. All
// of it was measured on the real program; see tests/behaviour.
package nginx

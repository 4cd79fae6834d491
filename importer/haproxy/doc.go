// Package haproxy reads configurations of HAProxy: what each backend repeats, how often, and for how long.
//
// By itself HAProxy repeats a failed connection three times and nothing else. What retry-on adds holds for every
// method, POST too, unless disable-l7-retry takes it out, and one server is tried as often as several. All of it was
// measured on the real program; see tests/behaviour.
package haproxy

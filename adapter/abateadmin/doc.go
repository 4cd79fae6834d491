// Package abateadmin shows guards and gates on one live page: what is in trouble, why, and since when.
//
//	page := abateadmin.New(abateadmin.Config{Title: "shop", Format: policyfile.Format})
//	set, err := policyfile.Load("policy.yaml", page.Adjust)
//	...
//	for _, name := range set.Names() {
//		page.Add(set.Guard(name))
//	}
//	mux.Handle("/debug/abate/", http.StripPrefix("/debug/abate", page))
//	server := &http.Server{Addr: "127.0.0.1:6060", Handler: mux}
//	server.RegisterOnShutdown(page.Close) // readers hold their connections
//
// All addresses on the page are relative, so it may stand under any path that ends in a slash. "abate top" shows the
// same in a terminal.
//
// # What it answers
//
//	GET  /             the page; it holds no data, and is the same for everybody
//	GET  /page.css     its style
//	GET  /page.js      its script
//	GET  /state        one Snapshot as JSON
//	GET  /events       a stream of Snapshots (text/event-stream), one a second: the first has every row, later ones
//	                   the rows that have changed
//	GET  /guard?name=N what is known about the guard N: five minutes, second by second, refusals, errors, events,
//	                   and its policy
//	GET  /gate?name=N  the same of the gate N
//	POST /override     {"guard": "N", "override": "forcedOpen"}, or "disabled", "shadow", or "" to take it back
//	POST /reload       loads the policy file again
//
// # Who may do what
//
// Config.Sees says who may see data, Config.Known who may change something; without Known nobody may, and the page says
// how to allow it. What changes something is a POST of application/json with the header X-Abate-Admin, and not from
// another web site: forms, links and images of others cannot send that. A page that was asked for on loopback answers
// only to names of loopback, so that no name of a stranger can be turned towards it. Every change is logged and shown
// on the page.
//
// The messages of errors are shown without user names, passwords and queries of URLs, and cut to 200 characters. What
// else is in them, whoever may see the page sees.
//
// # Cost
//
// Counting costs about 0.1 µs and no allocation for a call that succeeds at its first attempt, and 16 KB for each name.
// Nothing else is done while nobody looks. A reader costs about 3 µs for each row, once a second, and one goroutine:
// that of its own request; its first event costs about 10 µs for each row. Readers that do not keep up are dropped.
//
// In the browser a row that is far from what is in sight is data only. So a thousand rows weigh no more than sixty, and
// it is the page's own search, not the browser's, that finds all names.
package abateadmin

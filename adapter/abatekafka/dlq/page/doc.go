// Package page shows a dead-letter topic in a browser: groups of what went wrong, a letter with its value, headers,
// trace and history, replays with their progress, deleting and restoring, notes, and the audit of all that.
//
//	p, err := page.New(page.Config{Desk: desk})
//	server := &http.Server{Handler: p}
//	...
//	server.Shutdown(ctx)
//	p.Close() // cancels a replay that runs; it can be resumed
//
// # Who may do what
//
// Dead letters are customers' data, and a replay moves money. Requests must name a host of this page (Config.Hosts and
// loopback), so that no name of a stranger can be turned towards it. What changes something is a POST of
// application/json with the header X-Abate-Dlq, from this page or from no browser at all: other sites cannot send that.
// With Config.Authenticate every request but the empty page needs to be known, and the audit names who it was. Without
// it, whoever reaches the address may do all of it: bind loopback. The page loads nothing from anywhere, and its policy
// lets it run nothing that is in a letter. Config.HideValues shows keys, values and headers to nobody.
//
// # JSON
//
// Everything that the page does, a program can do. A failure is {"error": "..."} with a status of 4xx or 5xx.
//
// Filters are the query of a GET, or the object "filter" of a POST, with the keys of dlq.Filter: group, state (waiting,
// replayed, deleted, any), from and to (RFC 3339), partition, fromOffset, toOffset, where. Nothing means all that wait.
//
//	GET  api/desk                             the topic, its audit, its retention, what is hidden
//	GET  api/groups?FILTER                    the groups, the largest first
//	GET  api/letters?FILTER&limit=N&after=C   letters, the newest first; after is the "next" of the answer before; limit 1 to 500, else 50
//	GET  api/letters/PARTITION/OFFSET         one letter, with all there is
//	GET  api/letters/PARTITION/OFFSET/value   its value, byte for byte
//	GET  api/export?FILTER                    JSON lines, as abate dlq import reads them
//	GET  api/replay                           the replay that runs or ran last in this process, and all that the audit knows
//	GET  api/actions?limit=N&before=O         the audit, the newest first; before is the "next" of the answer before. What was done to many
//	                                          letters at once is one action with a count; each=1 gives every record
//	POST api/replay/plan     {filter, to, maxReplays}    a dry run: how many, where to, why some are left out, a sample
//	POST api/replay          {filter, to, rate, settleSeconds, maxFailures, maxReplays, reader, unjudged} or {resume}   starts; 409 while another runs here. With
//	                         takeOver: true also while another runs elsewhere, whose process is known to be dead
//	POST api/replay/cancel   {id}             stops a replay, wherever it runs
//	POST api/delete          {filter}         marks as deleted: {"count": N}
//	POST api/restore         {filter}         makes them wait again
//	POST api/note            {group, text}    leaves a note at a group
//
// # Cost
//
// Kafka has no index: a list of groups or letters reads the topic, up to four at a time; 100,000 letters of 1 KB take
// 1.5 s. One letter takes 50 ms. Memory holds what is shown.
package page

// Package pods is a test and has no code of its own. It starts fifty processes, each with twenty workers and a pool of
// twenty connections, on a real PostgreSQL with 100 connections and on a real Redis with as many as it likes, crashes
// the server and starts it again: once under pods that know nothing of storms, and once under pods whose connections
// are opened under abate.ConnectionPolicy. Connection attempts are counted in the pods, where they are dialled.
//
//	ABATE_ALONE=1 go test -count=1 -v ./tests/pods               the two tables, in a minute and a half
//	go test -run '^$' -bench . -benchtime 400x ./tests/pods      what a connection costs PostgreSQL
//
// Each connection costs PostgreSQL 15 about 4 ms of a processor (a process, its caches, one statement, its end; without
// TLS and without a password), so two processors open 500 in a second, and a thousand that come at once take them two.
//
// What makes the test hard is not the reconnecting but the sharing: fifty pods may open a thousand connections, and
// there are a hundred, so a pod that takes many before the last one has its first keeps that one out for good. It is
// what happens to unguarded pods, and to guarded ones whose pace grows too fast.
//
// Redis has no limit here, because go-redis comes back later than pgx: after as many failed dials in a row as its pool
// is large it dials once a second to find out, closes the connection that it gets, and only then opens others, for
// which the pace has them wait their turn. With 100 connections for fifty pods the last ones found none.
package pods

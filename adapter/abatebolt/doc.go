// Package abatebolt keeps idempotency keys in a file: for one instance that must not forget them when it restarts, and
// that has more of them than fit into memory. [Store] is an idempotency.Store that passes the suite of all stores.
//
// A method returns when what it did is on the disk: after a power failure a key that was begun is still held until its
// lease is over, and an answer that was stored is still there. Calls that come at the same time share one write to the
// disk.
//
// The store is bounded by what keys and answers take up, and forgets what has expired by itself, a little in each
// write. When it is full it does as idempotency.Memory does: the oldest answers go first; then, if it may, the oldest
// finished keys, which it says aloud; then further keys are refused with idempotency.ErrFull.
//
// Times in the file are those of the wall clock. A clock that is set back makes keys live longer, one that is set
// forward makes leases end early: let the machine slew its clock, as NTP daemons do by default.
//
// The file belongs to one process at a time. Several instances that must see the same keys need a store that they
// share: see adapter/abateredis and adapter/abatesql.
package abatebolt

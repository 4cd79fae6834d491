package abatesql

import (
	"context"
	"database/sql"
	"errors"
)

// Once calls fn in the transaction tx unless something was done under key before, and records the key in tx, so that
// the effect of fn and the record of it are committed together or not at all. ran reports whether fn was called.
// However often, from however many processes at once, and whatever dies in between: one effect. The caller commits,
// whether fn ran or not, and acknowledges the message after that. A commit that returns an error may have happened; the
// next attempt finds out.
//
// While another transaction with the key is open, Once waits for its end: if that commits, fn is not called; if it
// rolls back or its process dies, it is. Its context, and PostgreSQL's lock_timeout, bound the wait. Two transactions
// that each hold a key the other waits for are a deadlock, which PostgreSQL ends with an error for one of them: with
// several keys in one transaction, go through them in one order.
//
// If err is not nil, fn's error or another, the transaction has been rolled back, so that nobody commits half of it; so
// it has after a panic of fn. Under isolation levels above read committed the second of two at once may get a
// serialization failure (40001) instead of ran == false: try the transaction again.
//
// key is of any length from 1 byte on; only its hash is stored. It is remembered for Config.Remember, and until Clean
// removes it. Only what fn does through tx is done once: mails, requests and writes to other databases are not.
func (s *Store) Once(ctx context.Context, tx *sql.Tx, key string, fn func(ctx context.Context, tx *sql.Tx) error) (
	ran bool, err error) {
	switch {
	case tx == nil:
		return false, errors.New("abatesql: once: tx is nil; begin the transaction that the effect is in")
	case fn == nil:
		return false, rolledBack(tx, errors.New("abatesql: once: fn is nil"))
	case key == "":
		return false, rolledBack(tx, errors.New("abatesql: once: the key is empty, so all work would count as the same"))
	}
	result, err := tx.ExecContext(ctx, s.text.once, hash('o', key), micros(s.config.Remember))
	if err != nil {
		return false, rolledBack(tx, s.wrong("once", err))
	}
	n, err := result.RowsAffected()
	if err != nil {
		return false, rolledBack(tx, s.wrong("once", err))
	}
	if n == 0 {
		return false, nil
	}
	returned := false
	defer func() {
		if !returned { // a panic, or runtime.Goexit
			_ = rolledBack(tx, nil)
		}
	}()
	err = fn(ctx, tx)
	returned = true
	if err != nil {
		return true, rolledBack(tx, err)
	}
	return true, nil
}

// rolledBack ends tx and returns err, and what is wrong with the end. A transaction that is over already is at its end.
func rolledBack(tx *sql.Tx, err error) error {
	if rollback := tx.Rollback(); rollback != nil && !errors.Is(rollback, sql.ErrTxDone) {
		return errors.Join(err, rollback)
	}
	return err
}

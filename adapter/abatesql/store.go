package abatesql

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/abate-go/abate/policy/idempotency"
)

// Store keeps keys in one table of a PostgreSQL database. It is safe for concurrent use, and has nothing to close.
type Store struct {
	db     *sql.DB
	config Config
	text   statements
}

var _ idempotency.Restorer = (*Store)(nil)

// NewStore returns a store on db, which the caller opened and closes. It does not talk to the server: the first
// statement will say what is wrong with it, and CreateTable is a good first one.
func NewStore(db *sql.DB, c Config) (*Store, error) {
	c, err := c.withDefaults()
	if db == nil {
		err = errors.Join(errors.New("abatesql: db is nil; open it with sql.Open"), err)
	}
	if err != nil {
		return nil, err
	}
	return &Store{db, c, newStatements(c)}, nil
}

// Schema returns the statements that make the table and its index unless they exist.
func (s *Store) Schema() string { return strings.Join(s.text.schema, ";\n") + ";\n" }

// CreateTable makes the table and its index unless they exist. Many instances may do so at once.
func (s *Store) CreateTable(ctx context.Context) error {
	tx, err := s.db.BeginTx(ctx, nil)
	if err != nil {
		return s.wrong("create the table", err)
	}
	defer tx.Rollback()
	// IF NOT EXISTS alone fails when two do it at once. The lock ends with the transaction.
	if _, err = tx.ExecContext(ctx, `SELECT pg_advisory_xact_lock(hashtextextended($1, 0))`, s.config.Table); err != nil {
		return s.wrong("create the table", err)
	}
	for _, text := range s.text.schema {
		if _, err = tx.ExecContext(ctx, text); err != nil {
			return s.wrong("create the table", err)
		}
	}
	return s.wrong("create the table", tx.Commit())
}

// Clean removes at most limit rows that expired an hour ago or earlier, the oldest first, and returns how many. As long
// as that is limit, there may be more. Those that another instance is removing it leaves alone. Call it now and then,
// with 1000 for example, which takes some milliseconds.
func (s *Store) Clean(ctx context.Context, limit int) (removed int, err error) {
	if limit <= 0 {
		return 0, fmt.Errorf("abatesql: clean %d rows: the limit must be 1 or more", limit)
	}
	n, err := s.exec(ctx, "clean", s.text.clean, limit)
	return int(n), err
}

// Begin implements idempotency.Store. When the server's answer to it is lost, the key stays held until the lease is
// over.
func (s *Store) Begin(ctx context.Context, key string, fp idempotency.Fingerprint, lease time.Duration) (
	idempotency.Begun, error) {
	if err := idempotency.CheckKey(key); err != nil {
		return idempotency.Begun{}, err
	}
	ctx, cancel := context.WithTimeout(ctx, s.config.Timeout)
	defer cancel()
	args := []any{hash('k', key), fp[:], micros(lease), micros(lease) + micros(idempotency.Abandoned)}
	var b idempotency.Begun
	err := again(func() error {
		var token, left int64
		var same bool
		var answer []byte
		err := s.db.QueryRowContext(ctx, s.text.begin, args...).Scan(&token, &b.TakenOver, &same, &left, &answer)
		if err != nil {
			return err
		}
		switch {
		case token != 0:
			b.State, b.Token = idempotency.Run, uint64(token)
		case !same:
			b.State = idempotency.Mismatch
		case answer != nil:
			b.State = idempotency.Replay
			b.Response, err = idempotency.ParseResponse(answer)
		default:
			b.State, b.Lease = idempotency.Running, time.Duration(left)*time.Microsecond
		}
		return err
	})
	if err != nil {
		return idempotency.Begun{}, s.wrong("begin", err)
	}
	return b, nil
}

// Renew implements idempotency.Store.
func (s *Store) Renew(ctx context.Context, key string, token uint64, lease time.Duration) error {
	return s.held(ctx, "renew", s.text.renew, key, token, micros(lease), micros(lease)+micros(idempotency.Abandoned))
}

// Complete implements idempotency.Store. The row takes as much as the answer: PostgreSQL itself bounds that at 1 GB.
func (s *Store) Complete(ctx context.Context, key string, token uint64, r idempotency.Response,
	retention time.Duration) error {
	return s.held(ctx, "complete", s.text.complete, key, token, r.AppendTo(nil), micros(retention))
}

// Fail implements idempotency.Store.
func (s *Store) Fail(ctx context.Context, key string, token uint64) error {
	return s.held(ctx, "fail", s.text.fail, key, token)
}

// Restore implements idempotency.Restorer: a server that took over from another may lack what that had committed last.
func (s *Store) Restore(ctx context.Context, key string, fp idempotency.Fingerprint, was idempotency.Begun,
	lease time.Duration) error {
	return s.held(ctx, "restore", s.text.restore, key, was.Token, micros(lease),
		micros(lease)+micros(idempotency.Abandoned), fp[:], was.TakenOver)
}

// held runs a statement that changes the row of key if token holds it.
func (s *Store) held(ctx context.Context, what, text, key string, token uint64, args ...any) error {
	if err := idempotency.CheckKey(key); err != nil {
		return err
	}
	n, err := s.exec(ctx, what, text, append([]any{hash('k', key), int64(token)}, args...)...)
	if err == nil && n == 0 {
		return idempotency.ErrLost
	}
	return err
}

// exec runs a statement and returns how many rows it changed.
func (s *Store) exec(ctx context.Context, what, text string, args ...any) (rows int64, err error) {
	ctx, cancel := context.WithTimeout(ctx, s.config.Timeout)
	defer cancel()
	err = again(func() error {
		result, err := s.db.ExecContext(ctx, text, args...)
		if err == nil {
			rows, err = result.RowsAffected()
		}
		return err
	})
	return rows, s.wrong(what, err)
}

// tries bounds how often one statement is run. Each further one means that another instance got ahead of us just then.
const tries = 20

// again repeats a statement that found its row on the move: it returned none, or the server's default isolation is
// stricter than read committed and it said so with the code for it, and changed nothing.
func again(statement func() error) error {
	var err error
	for range tries {
		if err = statement(); !errors.Is(err, sql.ErrNoRows) && state(err) != serializationFailure {
			return err
		}
	}
	return fmt.Errorf("the row changed under each of %d tries: %w", tries, err)
}

// Codes of PostgreSQL's errors (its manual, appendix A).
const (
	serializationFailure = "40001"
	undefinedTable       = "42P01"
)

// state returns the code of a server's error, which drivers for PostgreSQL offer under this name.
func state(err error) string {
	var coded interface{ SQLState() string }
	if errors.As(err, &coded) {
		return coded.SQLState()
	}
	return ""
}

// wrong says which of our statements failed. nil stays nil.
func (s *Store) wrong(what string, err error) error {
	if err == nil {
		return nil
	}
	if state(err) == undefinedTable {
		return fmt.Errorf("abatesql: %s: the table %s does not exist; call CreateTable, or run the statements of Schema: %w",
			what, s.config.Table, err)
	}
	return fmt.Errorf("abatesql: %s: %w", what, err)
}

// hash makes keys of all lengths fit the index, and those of Once, whose kind is another, differ from the others.
func hash(kind byte, key string) []byte {
	sum := sha256.Sum256(append([]byte{kind}, key...))
	return sum[:]
}

// micros is d in the unit of PostgreSQL's clock.
func micros(d time.Duration) int64 { return max(d, 0).Microseconds() }

package abatesql_test

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"io"
	"strings"
	"sync"
	"testing"
)

// fake is a database that gives the answers it was told to, in turn, and notes what it is asked.
type fake struct {
	mu      sync.Mutex
	answers []reply
	asked   []string
}

type reply struct {
	rows     [][]driver.Value
	affected int64
	err      error
}

// coded is a server's error with its code.
type coded string

func (c coded) Error() string    { return "server: " + string(c) }
func (c coded) SQLState() string { return string(c) }

func open(t *testing.T, answers ...reply) (*sql.DB, *fake) {
	t.Helper()
	f := &fake{answers: answers}
	db := sql.OpenDB(f)
	t.Cleanup(func() { db.Close() })
	return db, f
}

// ask notes the first word of a statement and takes the next answer, or repeats the last one.
func (f *fake) ask(ctx context.Context, query string) (reply, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	word, _, _ := strings.Cut(query, " ")
	f.asked = append(f.asked, strings.ToLower(word))
	if err := ctx.Err(); err != nil || len(f.answers) == 0 {
		return reply{}, err
	}
	r := f.answers[0]
	if len(f.answers) > 1 {
		f.answers = f.answers[1:]
	}
	return r, r.err
}

func (f *fake) Connect(context.Context) (driver.Conn, error) { return f, nil }
func (f *fake) Driver() driver.Driver                        { return nil }
func (f *fake) Prepare(string) (driver.Stmt, error)          { return nil, errors.New("not prepared for this") }
func (f *fake) Close() error                                 { return nil }
func (f *fake) Begin() (driver.Tx, error)                    { f.note("begin"); return f, nil }
func (f *fake) Commit() error                                { f.note("commit"); return nil }
func (f *fake) Rollback() error                              { f.note("rollback"); return nil }

func (f *fake) note(word string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.asked = append(f.asked, word)
}

// said is what was asked so far, and forgets it.
func (f *fake) said() string {
	f.mu.Lock()
	defer f.mu.Unlock()
	said := strings.Join(f.asked, " ")
	f.asked = nil
	return said
}

func (f *fake) QueryContext(ctx context.Context, query string, _ []driver.NamedValue) (driver.Rows, error) {
	r, err := f.ask(ctx, query)
	return &rows{left: r.rows}, err
}

func (f *fake) ExecContext(ctx context.Context, query string, _ []driver.NamedValue) (driver.Result, error) {
	r, err := f.ask(ctx, query)
	return driver.RowsAffected(r.affected), err
}

type rows struct{ left [][]driver.Value }

func (r *rows) Columns() []string { return make([]string, 5) }
func (r *rows) Close() error      { return nil }

func (r *rows) Next(dest []driver.Value) error {
	if len(r.left) == 0 {
		return io.EOF
	}
	copy(dest, r.left[0])
	r.left = r.left[1:]
	return nil
}

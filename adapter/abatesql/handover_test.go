package abatesql_test

import (
	"context"
	"database/sql"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

// Once an opening has failed, who waits for one gets a connection that becomes free.
func TestWhoWaitsToOpenAConnectionGetsOneThatBecomesFree(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := full(nil)
		w.dials = func(_ context.Context, n int) error {
			if n > 1 {
				return coded("53300")
			}
			return nil
		}
		g, _ := connections(t, nil)
		db := pool(t, w, g)
		held, err := db.Conn(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		time.AfterFunc(300*time.Millisecond, func() { held.Close() })
		began := time.Now()
		if _, err := db.ExecContext(t.Context(), "UPDATE"); err != nil || time.Since(began) != 300*time.Millisecond {
			t.Errorf("a connection became free after 300ms; after %v: %v", time.Since(began), err)
		}
		if n := db.Stats().OpenConnections; n != 1 {
			t.Errorf("%d connections are open, want the one that was handed over", n)
		}
		if g.State().Pacing.AtOnce == 0 {
			t.Error("the guard has not noticed that the server is full")
		}
	})
}

// What is prepared on a connection stays with it.
func TestAConnectionWithAPreparedStatementIsNotHandedOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := full(nil)
		w.dials = func(_ context.Context, n int) error {
			if n > 1 {
				return coded("53300")
			}
			return nil
		}
		g, _ := connections(t, nil)
		db := pool(t, w, g)
		s, err := db.PrepareContext(t.Context(), "select")
		if err != nil {
			t.Fatal(err)
		}
		held, err := db.Conn(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		time.AfterFunc(300*time.Millisecond, func() { held.Close() })
		_, _ = db.ExecContext(t.Context(), "UPDATE")
		if _, err := s.ExecContext(t.Context()); err != nil || w.opened() > 100 {
			t.Errorf("the statement: %v", err)
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
}

// A write that a server refuses costs one connection, and the next one only when that has been replaced.
func TestAServerThatTakesNoWritesLosesOneConnectionAtATime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		refused := make([]error, 100)
		for i := range refused {
			refused[i] = coded("25006")
		}
		w := full(map[string][]error{"ExecContext": refused})
		g, _ := connections(t, nil)
		db := pool(t, w, g)
		db.SetMaxIdleConns(10)
		var all []*sql.Conn
		for range 10 {
			c, err := db.Conn(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			all = append(all, c)
		}
		for _, c := range all { // ten writes at the same moment
			if _, err := c.ExecContext(t.Context(), "UPDATE"); !errors.Is(err, coded("25006")) {
				t.Fatalf("error %v", err)
			}
		}
		for _, c := range all {
			c.Close()
		}
		if n := db.Stats().Idle; n != 9 {
			t.Errorf("%d of 10 connections are kept, want 9", n)
		}
	})
}

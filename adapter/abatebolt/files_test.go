package abatebolt_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/abate-go/abate/adapter/abatebolt"
	"github.com/abate-go/abate/inbound"
	"github.com/abate-go/abate/policy/idempotency"
)

func inFile(path string) inbound.Protection {
	return inbound.Protection{Idempotency: idempotency.Config{Methods: []string{"POST"}, File: path}}
}

func TestTheFileThatAProtectionNamesKeepsItsKeys(t *testing.T) {
	path := filepath.Join(t.TempDir(), "keys.db")
	for _, want := range []idempotency.State{idempotency.Run, idempotency.Running} { // the second after a restart
		var files abatebolt.Files
		p := inFile(path)
		files.AdjustProtection("orders", &p)
		again := inFile(path + "/../keys.db") // as after a reload, with another spelling
		files.AdjustProtection("orders", &again)
		if err := files.Err(); err != nil || again.Store != p.Store {
			t.Fatal(err, "or another store")
		}
		g, err := inbound.NewGate("orders", p)
		if err != nil {
			t.Fatal(err)
		}
		store, c, on := g.Idempotency()
		if !on {
			t.Fatal("keys are not looked at")
		}
		b, err := store.Begin(t.Context(), "key", fp, c.Lease)
		if err != nil || b.State != want {
			t.Errorf("%+v, %v, want %v", b, err, want)
		}
		if u, ok := g.KeysUsage(); !ok || u.Keys != 1 || u.MaxBytes != 1<<30 {
			t.Errorf("%+v, %v", u, ok)
		}
		if err := files.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

func TestAFileThatCannotBeOpenedIsAwayAndSaysWhy(t *testing.T) {
	var files abatebolt.Files
	p := inFile(filepath.Join(t.TempDir(), "no such folder", "keys.db"))
	files.AdjustProtection("orders", &p)
	if files.Err() == nil || p.Store == nil {
		t.Fatal(files.Err(), p.Store)
	}
	if _, err := p.Store.Begin(t.Context(), "key", fp, time.Minute); err == nil {
		t.Error("a key is run without having been looked up")
	}
	if err := os.Mkdir(filepath.Dir(p.Idempotency.File), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := files.Err(); err != nil { // which tries again
		t.Error(err)
	}
	if _, err := p.Store.Begin(t.Context(), "key", fp, time.Minute); err != nil {
		t.Error(err)
	}
	if err := files.Close(); err != nil {
		t.Error(err)
	}
}

func TestGatesThatShareAFileForgetNoEarlierThanTheStrictestAllows(t *testing.T) {
	var files abatebolt.Files
	t.Cleanup(func() { _ = files.Close() })
	path := filepath.Join(t.TempDir(), "keys.db")
	var told []inbound.GateEvent
	type store interface {
		idempotency.Store
		idempotency.Measured
	}
	add := func(name string, floor time.Duration) store {
		p := inFile(path)
		p.Idempotency.MaxFile, p.Idempotency.MinRetention = 20_000, floor
		p.Observer = inbound.GateObserverFunc(func(e inbound.GateEvent) { told = append(told, e) })
		files.AdjustProtection(name, &p)
		return p.Store.(store)
	}
	// put stores keys until there is no place, or until so many are there.
	put := func(store store, from, most int) (n int, err error) {
		for ; n < most; n++ {
			key := fmt.Sprintf("%064d", from+n)
			b, err := store.Begin(t.Context(), key, fp, time.Minute)
			if err == nil {
				err = store.Complete(t.Context(), key, b.Token, idempotency.Response{Status: 200}, time.Hour)
			}
			if err != nil {
				return n, err
			}
		}
		return n, nil
	}
	add("quick", time.Nanosecond)
	shared := add("strict", time.Hour)
	n, err := put(shared, 0, 1000)
	if !errors.Is(err, idempotency.ErrFull) || shared.Usage().Shortened.Keys != 0 || len(told) != 0 {
		t.Errorf("%d keys, %v, %+v, told %v", n, err, shared.Usage(), told)
	}
	add("strict", time.Nanosecond)
	if _, err := put(shared, 1000, 10); err != nil || shared.Usage().Shortened.Keys == 0 {
		t.Errorf("when both allow it: %v, %+v", err, shared.Usage())
	}
	if len(told) < 2 || told[0].Kind != inbound.KeysForgotten || told[0].Gate != "quick" || told[1].Gate != "strict" ||
		told[0].Delay <= 0 {
		t.Errorf("told %v", told)
	}
}

func TestAProtectionWithoutAFileIsLeftAlone(t *testing.T) {
	var files abatebolt.Files
	p := inFile("")
	files.AdjustProtection("orders", &p)
	if p.Store != nil || files.Err() != nil || files.Close() != nil {
		t.Errorf("%+v", p.Store)
	}
}

// A reload may come while the program ends. A file that it opened would stay open, and its lock with it.
func TestAfterCloseNoFileIsOpened(t *testing.T) {
	path := filepath.Join(t.TempDir(), "keys.db")
	var files abatebolt.Files
	before, after := inFile(path), inFile(path)
	files.AdjustProtection("orders", &before)
	if err := files.Close(); err != nil {
		t.Fatal(err)
	}
	files.AdjustProtection("orders", &after)
	if err := files.Err(); !errors.Is(err, abatebolt.ErrClosed) {
		t.Errorf("it says %v", err)
	}
	for _, p := range []inbound.Protection{before, after} {
		if _, err := p.Store.Begin(t.Context(), "key", fp, time.Minute); !errors.Is(err, abatebolt.ErrClosed) {
			t.Errorf("a key is looked up: %v", err)
		}
	}
	next, err := abatebolt.Open(path, abatebolt.Options{})
	if err != nil {
		t.Fatal("the next one does not get it:", err)
	}
	if err := errors.Join(next.Close(), files.Close()); err != nil {
		t.Error(err)
	}
}

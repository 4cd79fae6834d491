package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"time"

	"github.com/abate-go/abate/bench/program"
	"github.com/abate-go/abate/internal/loopback"
)

// rig is one run: a service of its own, what stands before it, and who calls.
type rig struct {
	ctx       context.Context
	lab       *lab
	dir       string
	name      string
	endpoints []*endpoint
	processes []*program.Process
	closers   []func() // run at the end, the last one first
}

// newRig starts the service for one contender's day.
func (l *lab) newRig(c contender, d day) (*rig, error) {
	dir, err := os.MkdirTemp(l.dir, "run-")
	if err != nil {
		return nil, err
	}
	// The workers of an nginx started as root are nobody.
	if err := os.Chmod(dir, 0o755); err != nil {
		return nil, err
	}
	r := &rig{ctx: l.ctx, lab: l, dir: dir, name: c.name}
	serve := c.serve
	if serve == nil {
		serve = serveHTTP
	}
	for i := range d.endpointsOf() {
		e, err := newEndpoint(d, i, serve)
		if err != nil {
			return nil, errors.Join(err, r.close())
		}
		r.endpoints = append(r.endpoints, e)
	}
	return r, nil
}

// close ends everything that belongs to the run.
func (r *rig) close() (err error) {
	for i := len(r.closers) - 1; i >= 0; i-- {
		r.closers[i]()
	}
	for _, p := range r.processes {
		err = errors.Join(err, p.Stop())
	}
	for _, e := range r.endpoints {
		e.close()
	}
	return errors.Join(err, os.RemoveAll(r.dir))
}

// addresses are the service's.
func (r *rig) addresses() []string {
	all := make([]string, len(r.endpoints))
	for i, e := range r.endpoints {
		all[i] = e.addr
	}
	return all
}

// start starts a program that listens at addr, and waits until it hands a request on and its answer back.
func (r *rig) start(name, addr string, argv []string) error {
	p, err := program.Start(r.dir, name, 2, argv)
	if err != nil {
		return err
	}
	r.processes = append(r.processes, p)
	return p.Await(r.ctx, addr, probe)
}

// probe asks once whether somebody answers well.
func probe(ctx context.Context, addr string) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	transport := &http.Transport{DisableKeepAlives: true}
	if !answered(ctx, transport, "http://"+addr+"/") {
		return errors.New("no good answer")
	}
	return nil
}

// write puts a configuration into the run's folder.
func (r *rig) write(file, text string) (string, error) {
	path := filepath.Join(r.dir, file)
	return path, os.WriteFile(path, []byte(text), 0o644)
}

// address is one at which a program can listen.
func (r *rig) address() (string, error) { return loopback.Address() }

// transport is what every HTTP caller sends with: as many connections as it likes, kept open. It ends with the run.
func (r *rig) transport() *http.Transport {
	t := &http.Transport{
		DialContext:         (&net.Dialer{Timeout: attemptTimeout}).DialContext,
		MaxIdleConnsPerHost: 2 * queueLength,
		DisableCompression:  true,
	}
	r.closers = append(r.closers, t.CloseIdleConnections)
	return t
}

// run plays a day with a contender.
func (l *lab) run(c contender, d day, seed uint64) (result, error) {
	r, err := l.newRig(c, d)
	if err != nil {
		return result{}, err
	}
	ask, err := c.start(r)
	if err != nil {
		return result{}, errors.Join(fmt.Errorf("%s: %w", c.name, err), r.close())
	}
	watching, stop := context.WithCancel(l.ctx)
	watched := make(chan lateness, 1)
	go func() { watched <- watchTimers(watching) }()
	k := clock{time.Now()}
	for _, e := range r.endpoints {
		e.begin(k)
	}
	asked, done := drive(l.ctx, k, arrivals(d, seed), ask)
	stop()
	got := result{asked: asked, answered: done, late: <-watched}
	for i := range got.asked {
		var sent int64
		for _, e := range r.endpoints {
			sent += e.arrived[i].Load()
		}
		got.sent = append(got.sent, sent)
	}
	for _, p := range r.processes {
		if p.Ended() {
			err = errors.Join(err, fmt.Errorf("%s has ended: %s", c.name, p.LastWords(600)))
		}
	}
	return got, errors.Join(err, r.close(), l.ctx.Err())
}

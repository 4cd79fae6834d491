//go:build unix

package pods_test

import (
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"sync"
	"testing"
	"time"
)

// limit ends a test that hangs. Nothing is measured with it.
const limit = time.Minute

// fleet is many pods, and what they have told.
type fleet struct {
	pods []*pod
	news chan struct{} // one when there is any
	end  func()        // of all pods; more than once is fine
}

// pod is one process.
type pod struct {
	mu    sync.Mutex
	beats []beat
}

// deploy starts n pods, which end with the test if not before.
func deploy(t *testing.T, n int, o order) *fleet {
	t.Helper()
	text, err := json.Marshal(o)
	if err != nil {
		t.Fatal(err)
	}
	f := &fleet{news: make(chan struct{}, 1)}
	var inputs []io.Closer
	var running sync.WaitGroup
	f.end = sync.OnceFunc(func() {
		for _, in := range inputs {
			_ = in.Close()
		}
		running.Wait()
	})
	t.Cleanup(f.end)
	for range n {
		cmd := exec.Command(os.Args[0])
		cmd.Env = append(os.Environ(), podOrder+"="+string(text), "GOMAXPROCS=1")
		cmd.Stderr = os.Stderr
		in, err := cmd.StdinPipe()
		if err != nil {
			t.Fatal(err)
		}
		out, err := cmd.StdoutPipe()
		if err == nil {
			err = cmd.Start()
		}
		if err != nil {
			t.Fatal(err)
		}
		inputs = append(inputs, in)
		p := new(pod)
		f.pods = append(f.pods, p)
		running.Go(func() {
			f.listen(p, out)
			if err := cmd.Wait(); err != nil {
				t.Errorf("a pod: %v", err)
			}
		})
	}
	return f
}

// listen takes what a pod tells, until its end.
func (f *fleet) listen(p *pod, out io.Reader) {
	for lines := json.NewDecoder(out); ; {
		var b beat
		if lines.Decode(&b) != nil {
			return
		}
		p.mu.Lock()
		p.beats = append(p.beats, b)
		p.mu.Unlock()
		select {
		case f.news <- struct{}{}:
		default:
		}
	}
}

// servedSince is when a pod had its first answer after a moment; false if it has had none.
func (p *pod) servedSince(from time.Time) (time.Time, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, b := range p.beats {
		for _, at := range []int64{b.First, b.Last} {
			if at > from.UnixMicro() {
				return time.UnixMicro(at), true
			}
		}
	}
	return time.Time{}, false
}

// serving is how many pods have had an answer after a moment, and when the last of them had its first.
func (f *fleet) serving(from time.Time) (pods int, last time.Time) {
	for _, p := range f.pods {
		if at, ok := p.servedSince(from); ok {
			pods++
			if at.After(last) {
				last = at
			}
		}
	}
	return pods, last
}

// await waits until every pod has had an answer after a moment, or the test has taken too long, and returns how many
// have.
func (f *fleet) await(from time.Time) int {
	over := time.NewTimer(limit)
	defer over.Stop()
	for {
		pods, _ := f.serving(from)
		if pods == len(f.pods) {
			return pods
		}
		select {
		case <-f.news:
		case <-over.C:
			return pods
		}
	}
}

// seen is what the fleet saw in the slots from one moment to another.
func (f *fleet) seen(from, to time.Time) []beat {
	first, last := from.UnixNano()/int64(slot), to.UnixNano()/int64(slot)
	all := make([]beat, last-first+1)
	for i := range all {
		all[i].Refused = make(map[string]int)
	}
	for _, p := range f.pods {
		p.mu.Lock()
		for _, b := range p.beats {
			if b.Slot >= first && b.Slot <= last {
				all[b.Slot-first].add(b)
			}
		}
		p.mu.Unlock()
	}
	return all
}

func (b *beat) add(other beat) {
	b.Dials += other.Dials
	b.Cancels += other.Cancels
	b.Served += other.Served
	b.Failed += other.Failed
	for why, n := range other.Refused {
		b.Refused[why] += n
	}
}

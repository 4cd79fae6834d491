package stale_test

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/abate-go/abate/proxy/h1"
	"github.com/abate-go/abate/proxy/stale"
)

const (
	fuzzedSize = 256 << 10
	fuzzedMost = 12_000 // of a body that should be kept
)

// model is a store as its comments promise it, without a bound on memory, beside a real one.
type model struct {
	t     *testing.T
	real  *stale.Store
	now   time.Duration
	kept  map[string]*modelResource
	open  []*modelRecorder
	made  int // responses so far; each has a number in a field
	bytes int // of all bodies and heads so far, generously: with few enough nothing may be lost
}

type modelResource struct {
	vary     string
	variants map[string]modelResponse // by selection
}

type modelResponse struct {
	id, body string
	received time.Duration
}

type modelRecorder struct {
	real            *stale.Recorder
	path, vary, sel string
	request         []h1.Field
	id, body        string
	size, written   int
	received        time.Duration
}

// selection is what a request has in the field that vary names, if any.
func selection(vary string, request []h1.Field) string {
	if vary == "" {
		return ""
	}
	return fmt.Sprintf("%q", text(request))
}

// roomy reports that nothing can have been lost for lack of memory.
func (m *model) roomy() bool { return m.bytes < fuzzedSize/4 }

func (m *model) begin(path, vary string, request []h1.Field, size int, declared bool) {
	m.made++
	m.bytes += 2*size + 2000
	id := fmt.Sprint(m.made)
	response := lines("Id: " + id)
	if vary != "" {
		response = append(response, lines("Vary: "+vary)...)
	}
	if declared {
		response = append(response, lines(fmt.Sprintf("Content-Length: %d", size))...)
	}
	body := strings.Repeat(fmt.Sprintf("%06d|", m.made), size/7+1)[:size]
	if r := m.real.Record(key(path), request, 200, response); r != nil {
		m.open = append(m.open, &modelRecorder{
			real: r, path: path, vary: vary, sel: selection(vary, request), request: request,
			id: id, body: body, size: size, received: m.now,
		})
	} else if m.roomy() && size <= fuzzedMost {
		m.t.Errorf("a response of %d bytes is not recorded", size)
	}
}

func (m *model) write(r *modelRecorder, n int) {
	n = min(n, r.size-r.written)
	r.real.Write([]byte(r.body[r.written : r.written+n]))
	r.written += n
}

// commit commits a recorder, complete or not, in the model only if the store may have taken it.
func (m *model) commit(i int, complete bool) {
	r := m.open[i]
	m.open = append(m.open[:i], m.open[i+1:]...)
	if !complete {
		r.real.Drop()
		return
	}
	m.write(r, r.size)
	r.real.Commit(r.received)
	e, ok := m.real.Get(key(r.path), r.request, r.received, forever)
	got := ok && idOf(e) == r.id
	wanted, res := r.size <= fuzzedMost, m.kept[r.path]
	if res != nil {
		for sel, v := range res.variants { // a newer one is in the way
			if v.received > r.received && (res.vary != strings.ToLower(r.vary) || sel == r.sel) {
				wanted = false
			}
		}
	}
	switch {
	case got && !wanted:
		m.t.Errorf("%s: a response of %d bytes received at %v should not be kept", r.path, r.size, r.received)
	case !got && wanted && m.roomy():
		m.t.Errorf("%s: a complete response of %d bytes is not kept", r.path, r.size)
	}
	if !got {
		return
	}
	if res == nil || res.vary != strings.ToLower(r.vary) {
		res = &modelResource{vary: strings.ToLower(r.vary), variants: map[string]modelResponse{}}
		m.kept[r.path] = res
	}
	res.variants[r.sel] = modelResponse{r.id, r.body, r.received}
}

// idOf is the number of the response in its first field.
func idOf(e *stale.Entry) string { return string(e.Fields[0].Value) }

func (m *model) get(path string, request []h1.Field, maxAge time.Duration) {
	e, ok := m.real.Get(key(path), request, m.now, maxAge)
	var want modelResponse
	there := false
	if res := m.kept[path]; res != nil {
		want, there = res.variants[selection(res.vary, request)]
	}
	there = there && m.now-want.received <= maxAge
	switch {
	case ok && !there:
		m.t.Fatalf("%s with %q: got %s, want nothing", path, text(request), idOf(e))
	case ok && (idOf(e) != want.id || string(e.Body) != want.body || e.Age != m.now-want.received):
		m.t.Fatalf("%s with %q: got %s aged %v, want %s aged %v", path, text(request), idOf(e), e.Age, want.id,
			m.now-want.received)
	case !ok && there && m.roomy():
		m.t.Fatalf("%s with %q: got nothing, want %s", path, text(request), want.id)
	}
}

// step plays one instruction of the program.
func (m *model) step(op, a, b, c byte) {
	path := fmt.Sprintf("/%d", a%4)
	request := lines(fmt.Sprintf("X: %d", b%3))
	if b%4 == 3 {
		request = nil
	}
	switch op % 8 {
	case 0, 1:
		sizes := []int{0, 10, 700, 5000, fuzzedMost, 20_000}
		m.begin(path, []string{"", "X", "x"}[int(c)%3], request, sizes[int(c/3)%len(sizes)], op >= 128)
	case 2:
		if len(m.open) > 0 {
			m.write(m.open[int(a)%len(m.open)], int(b)*int(c))
		}
	case 3, 4:
		if len(m.open) > 0 {
			m.commit(int(a)%len(m.open), c%8 != 0)
		}
	case 5:
		m.now += time.Duration(b) * time.Second
	case 6:
		m.get(path, request, time.Duration(c)*10*time.Second)
	case 7:
		if c%4 == 0 {
			m.real.Forget(key(path))
			delete(m.kept, path)
		}
	}
	if got := m.real.Bytes(); got < 0 || got > fuzzedSize {
		m.t.Fatalf("%d bytes in use of %d", got, fuzzedSize)
	}
}

// end gives everything back; nothing may be left.
func (m *model) end() {
	for _, r := range m.open {
		r.real.Drop()
	}
	for a := range 4 {
		m.real.Forget(key(fmt.Sprintf("/%d", a)))
	}
	if m.real.Bytes() != 0 || m.real.Len() != 0 {
		m.t.Errorf("%d bytes in %d responses are left", m.real.Bytes(), m.real.Len())
	}
}

func play(t *testing.T, program []byte) {
	m := &model{t: t, real: stale.New(fuzzedSize), now: noon, kept: map[string]*modelResource{}}
	for ; len(program) >= 4; program = program[4:] {
		m.step(program[0], program[1], program[2], program[3])
	}
	m.end()
}

func FuzzStoreAgainstItsModel(f *testing.F) {
	f.Add([]byte("\x00\x01\x02\x03\x03\x00\x00\x01\x06\x01\x02\x03"))
	random := rand.New(rand.NewPCG(3, 4))
	for range 4 {
		var program []byte
		for range 200 {
			program = binary.LittleEndian.AppendUint32(program, random.Uint32())
		}
		f.Add(program)
	}
	f.Fuzz(func(t *testing.T, program []byte) { play(t, program[:min(len(program), 4<<10)]) })
}

func TestRandomLoadStaysWithinMemoryAndTruth(t *testing.T) {
	random := rand.New(rand.NewPCG(5, 6))
	for range 300 {
		program := make([]byte, 4*(10+random.IntN(400)))
		for i := range program {
			program[i] = byte(random.Uint32())
		}
		play(t, program)
	}
}

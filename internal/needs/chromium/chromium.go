// Package chromium drives a real Chromium for tests: headless, with a profile of its own that is removed, and with a
// way to nothing but 127.0.0.1.
package chromium

import (
	"bufio"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/abate-go/abate/internal/needs"
)

// limit bounds every wait for something that must happen. It is long because the machine may be slow.
const limit = time.Minute

// Tab is the page of a browser. It is driven through a pipe: texts of JSON, each ended by a zero byte. Its methods
// belong to the goroutine of the test, and end the test if the browser does not do what it is asked.
type Tab struct {
	t       testing.TB
	to      *os.File
	answers chan message
	console []string // what came on its console, and what the page's policy forbade
	session string
	id      int
}

// message is one to the browser or from it.
type message struct {
	ID      int             `json:"id,omitempty"`
	Session string          `json:"sessionId,omitempty"`
	Method  string          `json:"method,omitempty"`
	Params  json.RawMessage `json:"params,omitempty"`
	Result  json.RawMessage `json:"result,omitempty"`
	Error   *struct {
		Message string `json:"message"`
	} `json:"error,omitempty"`
}

// Start starts a browser with an empty page, which ends with the test. flags are further ones of its command line, such
// as "--hide-scrollbars". Without Chromium or Chrome the test is skipped, or fails where CI is true. It takes about a
// second.
func Start(t testing.TB, flags ...string) *Tab {
	t.Helper()
	b := launch(t, flags)
	var target struct{ TargetID string }
	b.call("Target.createTarget", map[string]any{"url": "about:blank"}, &target)
	var session struct{ SessionID string }
	b.call("Target.attachToTarget", map[string]any{"targetId": target.TargetID, "flatten": true}, &session)
	b.session = session.SessionID
	for _, domain := range []string{"Page", "Runtime", "Log"} {
		b.call(domain+".enable", nil, nil)
	}
	return b
}

// launch starts the process, whose end is the test's.
func launch(t testing.TB, flags []string) *Tab {
	t.Helper()
	program := needs.Program(t, "chromium", "chromium-browser", "google-chrome")
	theirs, to, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	from, theirEnd, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	profile, err := os.MkdirTemp("", "abate-chromium") // removed when it has ended
	if err != nil {
		t.Fatal(err)
	}
	command := exec.Command(program,
		append(flags, "--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking",
			"--disable-component-update", "--disable-sync", "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",
			"--remote-debugging-pipe",
			"--user-data-dir="+filepath.Join(profile, "profile"), "about:blank")...)
	command.ExtraFiles = []*os.File{theirs, theirEnd} // 3 and 4
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	theirs.Close()
	theirEnd.Close()
	b := &Tab{t: t, to: to, answers: make(chan message, 1000)}
	go b.read(from)
	t.Cleanup(func() { b.close(command, from, profile) })
	return b
}

// read hands over what the browser says, until it has gone.
func (b *Tab) read(from *os.File) {
	defer close(b.answers)
	for r := bufio.NewReaderSize(from, 1<<20); ; {
		text, err := r.ReadBytes(0)
		if err != nil {
			return
		}
		var m message
		if json.Unmarshal(text[:len(text)-1], &m) == nil {
			b.answers <- m
		}
	}
}

// close asks the browser to end, and does not kill it: its helpers would go on writing to the profile.
func (b *Tab) close(command *exec.Cmd, from *os.File, profile string) {
	ended := make(chan struct{})
	go func() { _ = command.Wait(); close(ended) }()
	_, _ = b.to.Write([]byte("{\"id\":1000000,\"method\":\"Browser.close\"}\x00"))
	for open := true; open; {
		select {
		case _, open = <-b.answers:
		case <-time.After(limit):
			_ = command.Process.Kill()
			b.t.Error("the browser does not end when it is asked to")
			open = false
		}
	}
	<-ended
	b.to.Close()
	from.Close()
	_ = os.RemoveAll(profile)
}

// call asks the browser and waits for its answer.
func (b *Tab) call(method string, params, result any) {
	b.t.Helper()
	b.id++
	body, err := json.Marshal(params)
	if err != nil {
		b.t.Fatal(err)
	}
	text, err := json.Marshal(message{ID: b.id, Session: b.session, Method: method, Params: body})
	if err != nil {
		b.t.Fatal(err)
	}
	if _, err := b.to.Write(append(text, 0)); err != nil {
		b.t.Fatal(err)
	}
	timer := time.NewTimer(2 * limit)
	defer timer.Stop()
	for {
		select {
		case m, ok := <-b.answers:
			if !ok {
				b.t.Fatal("the browser has gone")
			}
			b.note(&m)
			if m.ID != b.id {
				continue
			}
			if m.Error != nil {
				b.t.Fatalf("%s: %s", method, m.Error.Message)
			}
			if result != nil {
				if err := json.Unmarshal(m.Result, result); err != nil {
					b.t.Fatal(err)
				}
			}
			return
		case <-timer.C:
			b.t.Fatalf("%s: no answer", method)
		}
	}
}

// refused is what the browser says of an answer of 4xx, which a page is there to show.
const refused = "Failed to load resource: the server responded with a status of 4"

// note keeps what must not happen: a message on the console, an exception, a dialog of a script.
func (b *Tab) note(m *message) {
	switch m.Method {
	case "Runtime.consoleAPICalled", "Runtime.exceptionThrown", "Log.entryAdded", "Page.javascriptDialogOpening":
		if text := string(m.Params); !strings.Contains(text, refused) {
			b.console = append(b.console, m.Method+": "+text)
		}
	}
}

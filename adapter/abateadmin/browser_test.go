package abateadmin_test

import (
	"bufio"
	"encoding/base64"
	"encoding/json"
	"fmt"
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

// tab is a page in a headless Chromium that reaches nothing but loopback. It is driven through a pipe: texts of JSON, each ended
// by a zero byte.
type tab struct {
	t       *testing.T
	to      *os.File
	answers chan cdp
	console []string // what came on its console, and what the page's policy forbade
	session string
	id      int
}

// cdp is a message to the browser or from it.
type cdp struct {
	ID      int             `json:"id,omitempty"`
	Session string          `json:"sessionId,omitempty"`
	Method  string          `json:"method,omitempty"`
	Params  json.RawMessage `json:"params,omitempty"`
	Result  json.RawMessage `json:"result,omitempty"`
	Error   *struct {
		Message string `json:"message"`
	} `json:"error,omitempty"`
}

// browse starts a browser with an empty page.
func browse(t *testing.T) *tab {
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
	command := exec.Command(program, "--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking",
		"--disable-component-update", "--disable-sync", "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1, EXCLUDE localhost", "--remote-debugging-pipe",
		"--user-data-dir="+filepath.Join(profile, "profile"), "about:blank")
	command.ExtraFiles = []*os.File{theirs, theirEnd} // 3 and 4
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	theirs.Close()
	theirEnd.Close()
	b := &tab{t: t, to: to, answers: make(chan cdp, 1000)}
	go func() {
		defer close(b.answers)
		for r := bufio.NewReaderSize(from, 1<<20); ; {
			text, err := r.ReadBytes(0)
			if err != nil {
				return
			}
			var m cdp
			if json.Unmarshal(text[:len(text)-1], &m) == nil {
				b.answers <- m
			}
		}
	}()
	t.Cleanup(func() { b.close(command, from, profile) })
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

// close asks the browser to end, and does not kill it: its helpers would go on writing to the profile.
func (b *tab) close(command *exec.Cmd, from *os.File, profile string) {
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
func (b *tab) call(method string, params, result any) {
	b.t.Helper()
	b.id++
	body, err := json.Marshal(params)
	if err != nil {
		b.t.Fatal(err)
	}
	text, err := json.Marshal(cdp{ID: b.id, Session: b.session, Method: method, Params: body})
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

// note keeps what must not happen: a message on the console, an exception, a dialog of a script.
func (b *tab) note(m *cdp) {
	switch m.Method {
	case "Runtime.consoleAPICalled", "Runtime.exceptionThrown", "Log.entryAdded", "Page.javascriptDialogOpening":
		if text := string(m.Params); !strings.Contains(text, "status of 4") { // an answer of 4xx that the page shows
			b.console = append(b.console, m.Method+": "+text)
		}
	}
}

// quiet fails the test if anything was on the console.
func (b *tab) quiet() {
	b.t.Helper()
	b.eval(`0`) // takes in what has come
	if len(b.console) > 0 {
		b.t.Errorf("on the console: %s", strings.Join(b.console, "\n"))
	}
}

// open goes to an address.
func (b *tab) open(url string) {
	b.t.Helper()
	b.call("Page.navigate", map[string]any{"url": "about:blank"}, nil) // else a change behind # alone loads nothing
	b.call("Page.navigate", map[string]any{"url": url}, nil)
}

// eval returns what an expression comes to, as a text.
func (b *tab) eval(expression string) string {
	b.t.Helper()
	var r struct {
		Result struct {
			Value any `json:"value"`
		} `json:"result"`
		ExceptionDetails json.RawMessage
	}
	b.call("Runtime.evaluate", map[string]any{"expression": expression, "awaitPromise": true, "returnByValue": true, "userGesture": true}, &r)
	if r.ExceptionDetails != nil {
		b.t.Fatalf("%s: %s", expression, r.ExceptionDetails)
	}
	return fmt.Sprint(r.Result.Value)
}

// until waits for an expression to be true.
func (b *tab) until(expression string) {
	b.t.Helper()
	script := fmt.Sprintf(`new Promise(done => { const end = Date.now() + %d, look = () => { let is = false; try { is = !!(%s) } catch { }
		if (is || Date.now() > end) done(is); else setTimeout(look, 30) }; look() })`, limit.Milliseconds(), expression)
	if b.eval(script) != "true" {
		b.t.Fatalf("it never came to %s; the page shows:\n%s", expression, b.eval(`document.body.innerText`))
	}
}

// shows waits for a text.
func (b *tab) shows(text string) {
	b.t.Helper()
	b.until(fmt.Sprintf(`document.body.innerText.includes(%q)`, text))
}

// press presses a key.
func (b *tab) press(keys ...string) {
	b.t.Helper()
	codes := map[string]int{"Enter": 13, "Escape": 27, "Tab": 9}
	for _, key := range keys {
		text := key
		if len(key) > 1 {
			text = map[string]string{"Enter": "\r"}[key]
		}
		b.call("Input.dispatchKeyEvent", map[string]any{"type": "keyDown", "key": key, "text": text, "windowsVirtualKeyCode": codes[key]}, nil)
		b.call("Input.dispatchKeyEvent", map[string]any{"type": "keyUp", "key": key, "windowsVirtualKeyCode": codes[key]}, nil)
	}
}

// size makes the window so wide, and says how wide the page then is.
func (b *tab) size(width int, dark bool) (page string) {
	b.t.Helper()
	b.call("Emulation.setDeviceMetricsOverride", map[string]any{"width": width, "height": 1000, "deviceScaleFactor": 1, "mobile": false}, nil)
	scheme := "light"
	if dark {
		scheme = "dark"
	}
	b.call("Emulation.setEmulatedMedia", map[string]any{"features": []map[string]string{{"name": "prefers-color-scheme", "value": scheme}}}, nil)
	return b.eval(`document.documentElement.scrollWidth`)
}

// picture saves what the page looks like, where the environment asks for pictures.
func (b *tab) picture(name string) {
	b.t.Helper()
	dir := os.Getenv("ABATE_PICTURES")
	if dir == "" {
		return
	}
	var shot struct{ Data string }
	b.call("Page.captureScreenshot", nil, &shot)
	body, err := base64.StdEncoding.DecodeString(shot.Data)
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, name+".png"), body, 0o644)
	}
	if err != nil {
		b.t.Error(err)
	}
}

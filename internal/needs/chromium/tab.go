package chromium

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// Quiet fails the test if there was anything on the console since the start: a message, an exception, something that
// the page's policy forbade, a dialog of a script. An answer of 4xx does not count.
func (b *Tab) Quiet() {
	b.t.Helper()
	b.Eval(`0`) // takes in what has come
	if len(b.console) > 0 {
		b.t.Errorf("on the console: %s", strings.Join(b.console, "\n"))
	}
}

// Open goes to an address, and loads it even if only what is behind # differs. It does not wait for the page.
func (b *Tab) Open(url string) {
	b.t.Helper()
	b.call("Page.navigate", map[string]any{"url": "about:blank"}, nil) // else a change behind # alone loads nothing
	b.call("Page.navigate", map[string]any{"url": url}, nil)
}

// Eval returns what an expression of JavaScript comes to, as a text. It waits for a promise, and an exception ends the
// test.
func (b *Tab) Eval(expression string) string {
	b.t.Helper()
	var r struct {
		Result struct {
			Value any `json:"value"`
		} `json:"result"`
		ExceptionDetails json.RawMessage
	}
	b.call("Runtime.evaluate", map[string]any{
		"expression": expression, "awaitPromise": true, "returnByValue": true, "userGesture": true,
	}, &r)
	if r.ExceptionDetails != nil {
		b.t.Fatalf("%s: %s", expression, r.ExceptionDetails)
	}
	return fmt.Sprint(r.Result.Value)
}

// Until waits, a minute at most, for an expression to be true. An exception counts as false.
func (b *Tab) Until(expression string) {
	b.t.Helper()
	script := fmt.Sprintf(
		`new Promise(done => { const end = Date.now() + %d, look = () => { let is = false; try { is = !!(%s) } catch { }
		if (is || Date.now() > end) done(is); else setTimeout(look, 30) }; look() })`, limit.Milliseconds(), expression)
	if b.Eval(script) != "true" {
		b.t.Fatalf("it never came to %s; the page shows:\n%s", expression, b.Eval(`document.body.innerText`))
	}
}

// Shows waits for a text, a minute at most.
func (b *Tab) Shows(text string) {
	b.t.Helper()
	b.Until(fmt.Sprintf(`document.body.innerText.includes(%q)`, text))
}

// Click waits for a button or link that is shown and begins with a text, and presses the first. With a dialog open it
// looks there only.
func (b *Tab) Click(text string) {
	b.t.Helper()
	find := fmt.Sprintf(`[...(document.querySelector('dialog[open]') || document).querySelectorAll('button, a, `+
		`summary')].find(e => e.offsetParent && e.textContent.trim().startsWith(%q) && !e.disabled)`, text)
	b.Until(find)
	b.Eval(find + `.click()`)
}

// Fill waits for the field with an id, and writes into it as somebody would.
func (b *Tab) Fill(id, text string) {
	b.t.Helper()
	b.Until(fmt.Sprintf(`document.getElementById(%q)`, id))
	b.Eval(fmt.Sprintf(`{ const e = document.getElementById(%q); e.focus(); e.value = %q;
		for (const kind of ['input', 'change']) e.dispatchEvent(new Event(kind, {bubbles: true})) }`, id, text))
}

// Type puts a text where the focus is.
func (b *Tab) Type(text string) {
	b.t.Helper()
	b.call("Input.insertText", map[string]any{"text": text}, nil)
}

// Press presses keys one after another: "Enter", "Escape", "Tab", or a letter.
func (b *Tab) Press(keys ...string) {
	b.t.Helper()
	codes := map[string]int{"Enter": 13, "Escape": 27, "Tab": 9}
	for _, key := range keys {
		text := key
		if len(key) > 1 {
			text = map[string]string{"Enter": "\r"}[key]
		}
		b.call("Input.dispatchKeyEvent", map[string]any{
			"type": "keyDown", "key": key, "text": text, "windowsVirtualKeyCode": codes[key],
		}, nil)
		b.call("Input.dispatchKeyEvent", map[string]any{"type": "keyUp", "key": key, "windowsVirtualKeyCode": codes[key]},
			nil)
	}
}

// Size makes the window so many pixels wide, and says how wide the page then is. dark is what the reader prefers.
func (b *Tab) Size(width int, dark bool) (page string) {
	b.t.Helper()
	b.call("Emulation.setDeviceMetricsOverride", map[string]any{
		"width": width, "height": 1000, "deviceScaleFactor": 1, "mobile": false,
	}, nil)
	scheme := "light"
	if dark {
		scheme = "dark"
	}
	b.call("Emulation.setEmulatedMedia", map[string]any{
		"features": []map[string]string{{"name": "prefers-color-scheme", "value": scheme}},
	}, nil)
	return b.Eval(`document.documentElement.scrollWidth`)
}

// Picture saves what the window shows as NAME.png in the folder that the environment calls ABATE_PICTURES; without one
// it does nothing.
func (b *Tab) Picture(name string) {
	b.t.Helper()
	b.picture(name, false)
}

// WholePicture is a Picture of the page down to its end.
func (b *Tab) WholePicture(name string) {
	b.t.Helper()
	b.picture(name, true)
}

func (b *Tab) picture(name string, whole bool) {
	b.t.Helper()
	dir := os.Getenv("ABATE_PICTURES")
	if dir == "" {
		return
	}
	var shot struct{ Data string }
	b.call("Page.captureScreenshot", map[string]any{"captureBeyondViewport": whole}, &shot)
	body, err := base64.StdEncoding.DecodeString(shot.Data)
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, name+".png"), body, 0o644)
	}
	if err != nil {
		b.t.Error(err)
	}
}

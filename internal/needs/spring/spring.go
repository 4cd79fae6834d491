// Package spring runs a real application with Spring Kafka for tests, from the Maven project in app. It is compiled
// once for each user, with jars from Maven Central.
package spring

import (
	"bufio"
	"bytes"
	"embed"
	"encoding/json"
	"io"
	"io/fs"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/abate-go/abate/internal/needs"
)

//go:embed app/pom.xml app/src
var files embed.FS

// limit is how long the application may take for anything.
const limit = 90 * time.Second

// Config describes an application with one listener.
type Config struct {
	Broker, Topic, Group string
	// Attempts, Delay, Multiplier and MaxDelay are those of @RetryableTopic. Zero Attempts: no retry topics, a plain
	// dead-letter topic.
	Attempts        int
	Delay, MaxDelay time.Duration
	Multiplier      float64
	// Fail has deliveries of messages with a key fail, up to that attempt; the key * stands for all.
	Fail map[string]int
	// Only are the topics to listen to; empty: all.
	Only []string
}

// Event is a line that the application prints: what it received, for "delivery" and "dead" (in the dead-letter topic).
type Event struct {
	Event     string `json:"event"`
	At        int64  `json:"at"` // ms since 1970
	Topic     string `json:"topic"`
	Partition int32  `json:"partition"`
	Offset    int64  `json:"offset"`
	Timestamp int64  `json:"timestamp"` // ms since 1970
	Key       []byte `json:"key"`
	Value     []byte `json:"value"`
	Headers   []struct {
		Key   string `json:"key"`
		Value []byte `json:"value"`
	} `json:"headers"`
	Topics map[string]string `json:"topics"` // of "chain": topic → group
}

// App is an application that runs.
type App struct {
	events chan Event
	log    safeBuffer
	// Chain are the topics that it listens to with their groups, whether they exist or not.
	Chain map[string]string
}

// Start starts an application that ends with the test, which takes some 3 s. It has its partitions when Start returns:
// those of topics that exist.
func Start(t testing.TB, c Config) *App {
	t.Helper()
	a := start(t, c)
	if e := a.Next(t); e.Event != "ready" {
		t.Fatalf("the application began with %+v", e)
	}
	return a
}

// ChainOf returns the topics with their groups that Spring makes of a configuration. They need not exist.
func ChainOf(t testing.TB, c Config) map[string]string {
	t.Helper()
	return start(t, c).Chain
}

func start(t testing.TB, c Config) *App {
	t.Helper()
	project, err := fs.Sub(files, "app")
	if err != nil {
		t.Fatal(err)
	}
	java := needs.Program(t, "java")
	folder := needs.Maven(t, "spring-kafka", project,
		"compile", "dependency:copy-dependencies", "-DincludeScope=runtime", "-DoutputDirectory=libs")
	classes := filepath.Join(folder, "target", "classes") + string(filepath.ListSeparator) +
		filepath.Join(folder, "libs", "*")
	args := append([]string{
		"-Xmx128m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn",
	},
		c.properties()...)
	cmd := exec.Command(java, append(args, "-cp", classes, "abate.Main")...)
	a := &App{events: make(chan Event, 1000)}
	cmd.Stderr = &a.log
	in, err := cmd.StdinPipe() // its end, whoever makes it, ends the application
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
	read := make(chan struct{})
	go func() { a.read(out); close(read) }()
	t.Cleanup(func() {
		_ = in.Close()
		select {
		case <-read:
		case <-time.After(limit):
			_ = cmd.Process.Kill()
			<-read
		}
		_ = cmd.Wait()
	})
	a.Chain = a.Next(t).Topics
	return a
}

// properties are the settings as the application takes them.
func (c *Config) properties() []string {
	var fail []string
	for key, attempt := range c.Fail {
		fail = append(fail, key+"="+strconv.Itoa(attempt))
	}
	mode := "retry"
	if c.Attempts == 0 {
		mode = "recoverer"
	}
	return []string{"-Dbootstrap=" + c.Broker, "-Dtopic=" + c.Topic, "-Dgroup=" + c.Group, "-Dmode=" + mode,
		"-Dattempts=" + strconv.Itoa(c.Attempts), "-Dmultiplier=" + strconv.FormatFloat(c.Multiplier, 'g', -1, 64),
		"-Ddelay=" + strconv.FormatInt(c.Delay.Milliseconds(), 10),
		"-DmaxDelay=" + strconv.FormatInt(c.MaxDelay.Milliseconds(), 10),
		"-Dfail=" + strings.Join(fail, ","), "-Donly=" + strings.Join(c.Only, ",")}
}

// read turns lines into events until there are no more.
func (a *App) read(out io.Reader) {
	defer close(a.events)
	lines := bufio.NewScanner(out)
	lines.Buffer(nil, 8<<20)
	for lines.Scan() {
		var e Event
		if err := json.Unmarshal(lines.Bytes(), &e); err != nil {
			a.log.line("not an event: " + lines.Text())
			continue
		}
		a.events <- e
	}
}

// Events are the events, for a test that waits for others, too. It ends with the application.
func (a *App) Events() <-chan Event { return a.events }

// Next returns the next event; it fails the test if there is none.
func (a *App) Next(t testing.TB) Event {
	t.Helper()
	select {
	case e, ok := <-a.events:
		if ok {
			return e
		}
		t.Fatalf("the Spring application has ended; its log:\n%s", a.log.String())
	case <-time.After(limit):
		t.Fatalf("the Spring application was silent for %v; its log:\n%s", limit, a.log.String())
	}
	return Event{}
}

// safeBuffer is a log that one writes and another reads.
type safeBuffer struct {
	mu   sync.Mutex
	text bytes.Buffer
}

// Write appends to it.
func (b *safeBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.Write(p)
}

func (b *safeBuffer) line(s string) { _, _ = b.Write([]byte(s + "\n")) }

// String is what was written.
func (b *safeBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.String()
}

package kafkatools

import (
	"bufio"
	"context"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/abate-go/abate/adapter/abatekafka/dlq"
)

func TestDLQServeSaysWhatIsWrongBeforeItConnects(t *testing.T) {
	for args, says := range map[string][]string{
		"--listen 0.0.0.0:15010":        {"can be reached from other machines", "--token-file"},
		"--listen 10.0.0.1:0":           {"can be reached from other machines"},
		"--listen :15010":               {"can be reached from other machines"},
		"--listen 15010":                {"is not an address"},
		"--serve-cert a.pem":            {"need each other"},
		"--listen x --serve-key b.pem":  {"is not an address", "need each other"},
		"--listen 127.0.0.1:0 --nobody": {"nobody"},
		"more words":                    {"a word too many"},
	} {
		var stdout, stderr strings.Builder
		code := DlqCommand(t.Context(), append([]string{"serve", "--brokers", "127.0.0.1:1", "--topic", "payments-dlq"},
			strings.Fields(args)...), &stdout, &stderr)
		if code != 2 || stdout.String() != "" {
			t.Errorf("%s: exit %d, prints %s", args, code, stdout.String())
		}
		for _, text := range says {
			if !strings.Contains(stderr.String(), text) {
				t.Errorf("%s: says %s, want %s", args, stderr.String(), text)
			}
		}
	}
	var stdout strings.Builder
	if code := DlqCommand(t.Context(), []string{"serve", "-h"}, &stdout, io.Discard); code != 0 ||
		!strings.Contains(stdout.String(), "--hide-values") {
		t.Errorf("help: exit %d, %s", code, stdout.String())
	}
	for line := range strings.Lines(serveUsage) {
		if len(line) > 101 {
			t.Errorf("too long: %s", line)
		}
	}
}

// served runs a page of a desk that is not open, and returns its address. The program ends with the test, with exit
// code 0.
func served(t *testing.T, s dlqServer) (url string) {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	out, in := io.Pipe()
	ended := make(chan int, 1)
	go func() { ended <- s.run(ctx, new(dlq.Desk), in, io.Discard) }()
	t.Cleanup(func() {
		stop()
		select {
		case code := <-ended:
			if code != 0 {
				t.Errorf("exit code %d", code)
			}
		case <-time.After(time.Minute):
			t.Error("it does not end")
		}
	})
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	return line[strings.Index(line, "http"):len(line)-1] + "/"
}

// look asks for a page under a name, with a token, and returns the status and the body.
func look(t *testing.T, url, host, token string) (status int, body string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	if host != "" {
		r.Host = host
	}
	if token != "" {
		r.Header.Set("Authorization", "Bearer "+token)
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	read, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	return answer.StatusCode, string(read)
}

func TestDLQServeShowsThePageAndEndsWhenItIsTold(t *testing.T) {
	url := served(t, dlqServer{listen: "127.0.0.1:0", hosts: "dlq.example.com, other"})
	for _, c := range []struct {
		path, host string
		status     int
		text       string
	}{
		{"", "", 200, "<title>Dead letters</title>"},
		{"", "dlq.example.com", 200, "<title>"},
		{"", "other:80", 200, "<title>"},
		{"", "evil.example.com", 421, "not"},
		{"healthz", "", 200, "ok"},
		{"metrics", "", 200, "abate_dlq_replay_running"},
		{"api/replay?all=0", "", 200, `"here":null`},
		{"api/nothing", "", 404, "no such request"},
	} {
		if status, body := look(t, url+c.path, c.host, ""); status != c.status || !strings.Contains(body, c.text) {
			t.Errorf("/%s of %q: %d %.200s", c.path, c.host, status, body)
		}
	}
}

func TestDLQServeReadsItsTokensAgain(t *testing.T) {
	file := filepath.Join(t.TempDir(), "tokens")
	write := func(text string) {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	const first, second = "aaaaaaaaaaaaaaaaaaaaaaaa", "bbbbbbbbbbbbbbbbbbbbbbbbbbbb"
	write("ann " + first + "\n")
	url := served(t, dlqServer{listen: "127.0.0.1:0", tokens: file}) + "api/replay?all=0"
	if status, _ := look(t, url, "any.example.com", first); status != 200 {
		t.Errorf("the token: %d", status)
	}
	for _, token := range []string{"", second} {
		if status, _ := look(t, url, "", token); status != 401 {
			t.Errorf("token %q: %d", token, status)
		}
	}
	write("ann " + first + "\nbob " + second + "\n")
	f := &tokenFile{path: file}
	if err := f.read(); err != nil {
		t.Fatal(err)
	}
	r := &http.Request{Header: http.Header{"Authorization": {"Bearer " + second}}}
	if name, ok := f.caller(r); !ok || name != "bob" {
		t.Errorf("%q, %v", name, ok)
	}
	write("garbage")
	f.looked = time.Time{}
	if name, ok := f.caller(r); !ok || name != "bob" {
		t.Errorf("while the file is wrong: %q, %v", name, ok)
	}
	write("ann " + first + "\n")
	f.looked = time.Time{}
	if _, ok := f.caller(r); ok {
		t.Error("a token that was taken away is good")
	}
	bad := dlqServer{listen: "127.0.0.1:0", tokens: filepath.Join(t.TempDir(), "none")}
	if code := bad.run(t.Context(), new(dlq.Desk), io.Discard, io.Discard); code != 2 {
		t.Errorf("without its file: exit %d", code)
	}
}

package basics

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"time"

	"github.com/abate-go/abate/cmd/internal/cli"
)

const probeUsage = `Usage: abate probe [--timeout D] URL

Sends a GET to URL. It is for health checks in images that have no shell and no curl:

  abate probe http://127.0.0.1:15000/readyz

It uses no HTTP proxy, whatever the environment says, and follows no redirect.

  --timeout D   how long the answer may take (default 2s)
  -h, --help    print this

Exit code: 0 the answer is 2xx, 1 it is not or does not come in time, 2 wrong usage.
`

// ProbeCommand is "abate probe".
func ProbeCommand(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	flags := flag.NewFlagSet("probe", flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	timeout := flags.Duration("timeout", 2*time.Second, "")
	urls, err := cli.ParseAll(flags, args)
	switch {
	case errors.Is(err, flag.ErrHelp):
		fmt.Fprint(stdout, probeUsage)
		return 0
	case err != nil:
		fmt.Fprintf(stderr, "abate probe: %v\n\n%s", err, probeUsage)
		return 2
	}
	if problems := probeProblems(urls, *timeout); len(problems) > 0 {
		for _, p := range problems {
			fmt.Fprintf(stderr, "abate probe: %s\n", p)
		}
		fmt.Fprint(stderr, "\n"+probeUsage)
		return 2
	}
	ctx, cancel := context.WithTimeout(ctx, *timeout)
	defer cancel()
	err = probe(ctx, urls[0])
	switch {
	case err == nil:
		return 0
	case errors.Is(err, context.DeadlineExceeded):
		err = fmt.Errorf("%s did not answer within %v", urls[0], *timeout)
	}
	fmt.Fprintf(stderr, "abate probe: %v\n", err)
	return 1
}

// probeProblems is what is wrong with the words.
func probeProblems(urls []string, timeout time.Duration) (problems []string) {
	if len(urls) != 1 {
		problems = append(problems,
			fmt.Sprintf("%s; write one, for example http://127.0.0.1:15000/readyz", cli.Count(len(urls), "URL")))
	}
	for _, raw := range urls {
		if u, err := url.Parse(raw); err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
			problems = append(problems, fmt.Sprintf("%q is not a URL; write for example http://127.0.0.1:15000/readyz", raw))
		}
	}
	if timeout <= 0 {
		problems = append(problems, fmt.Sprintf("--timeout %v is out of range: write more than 0s", timeout))
	}
	return problems
}

func probe(ctx context.Context, url string) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	client := &http.Client{ // neither a proxy nor the target of a redirect may answer for the one that was asked
		Transport:     &http.Transport{Proxy: nil, DisableKeepAlives: true},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	resp, err := client.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode/100 != 2 {
		return fmt.Errorf("%s answered %s", url, resp.Status)
	}
	return nil
}

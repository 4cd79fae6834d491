package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"time"
)

const probeUsage = `Usage: abate probe [--timeout D] URL

Asks URL with GET and exits 0 if the answer is 2xx, else 1. For health checks in images that have no shell and no curl:

  abate probe http://127.0.0.1:15000/readyz

  --timeout D   how long the answer may take (default 2s)
`

// probeCommand is "abate probe".
func probeCommand(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	flags := flag.NewFlagSet("probe", flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	timeout := flags.Duration("timeout", 2*time.Second, "")
	urls, err := parseAll(flags, args)
	switch {
	case errors.Is(err, flag.ErrHelp):
		fmt.Fprint(stdout, probeUsage)
		return 0
	case err != nil:
		fmt.Fprintf(stderr, "abate probe: %v\n\n%s", err, probeUsage)
		return 2
	case len(urls) != 1 || *timeout <= 0:
		fmt.Fprint(stderr, probeUsage)
		return 2
	}
	if u, err := url.Parse(urls[0]); err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		fmt.Fprintf(stderr, "abate probe: %q is not a URL; for example http://127.0.0.1:15000/readyz\n", urls[0])
		return 2
	}
	ctx, cancel := context.WithTimeout(ctx, *timeout)
	defer cancel()
	if err := probe(ctx, urls[0]); err != nil {
		fmt.Fprintf(stderr, "abate probe: %v\n", err)
		return 1
	}
	return 0
}

func probe(ctx context.Context, url string) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	client := &http.Client{Transport: &http.Transport{Proxy: nil, DisableKeepAlives: true}} // a health check never goes through a proxy
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

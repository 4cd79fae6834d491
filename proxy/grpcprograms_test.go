package proxy_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/abate-go/abate/internal/needs"
)

// conformed is what every client prints, once for each of two ways.
const conformed = `%[1]s unary hello one,two 00ff01
%[1]s empty 0
%[1]s large true
%[1]s server stream 500 499 0
%[1]s empty server stream 0 0
%[1]s client stream 500 messages, 2500 bytes
%[1]s empty client stream 0 messages, 0 bytes
%[1]s chat 100 99 0
%[1]s empty streams 60
%[1]s at once 100
%[1]s status 9 true 08091203626164
%[1]s unimplemented 12
%[1]s told within the hour
%[1]s deadline 4
%[1]s cancel 1
%[1]s the service has heard of both true
`

// Real clients and services of gRPC in Python and Node make calls of all kinds through the proxy, also without a
// message: unary calls, streams, metadata, statuses with details, large and compressed messages, deadlines and
// cancellation.
func TestPythonAndNodeProgramsMakeGRPCCallsOfEveryKind(t *testing.T) {
	if testing.Short() {
		return // it takes seconds
	}
	node, project := needs.Node(t, "grpc-node", os.DirFS("testdata/clients/node"))
	python := needs.Python(t, "grpc")
	programs := map[string]struct{ server, client []string }{
		"Node": {[]string{node, filepath.Join(project, "server.js")}, []string{node, filepath.Join(project, "client.js")}},
		"Python": {[]string{python, "testdata/clients/conformance_server.py"}, []string{
			python, "testdata/clients/conformance_client.py",
		}},
	}
	const all = "retryMethods: ['/conf.Test/*'], retryBudget: {ratio: 1}"
	egress := func(keys string) func(t *testing.T, url string) string {
		return func(t *testing.T, url string) string {
			return start(
				t, fmt.Sprintf("defaults: {circuitBreaker: {disabled: true}}\nservices: {s: {upstreams: [%q], routes: [{path: "+
					"/}], %s}}\n", url, keys)).addr
		}
	}
	ways := map[string]func(t *testing.T, url string) string{
		"passed on": egress("maxRetries: 0"),
		"default":   func(t *testing.T, url string) string { return start(t, single([]string{url})).addr },
		"retried":   egress(all + ", timeout: 1h, attemptTimeout: 30m"),
		"hedged":    egress(all + ", hedge: {delay: 2s}"),
		"gate": func(t *testing.T, url string) string {
			return protect(t, guardOf(url, "shed: {concurrency: fixed, maxConcurrency: 1000}")).addr
		},
	}
	for served, s := range programs {
		url := "h2c://" + program(t, s.server...)
		for asks, c := range programs {
			for way, through := range ways {
				if asks != served && way != "default" && way != "gate" { // what the policy does is the same whatever the languages
					continue
				}
				t.Run(asks+" to "+served+", "+way, func(t *testing.T) {
					addr := through(t, url)
					ctx, cancel := context.WithTimeout(t.Context(), 2*patience)
					defer cancel()
					out, err := exec.CommandContext(ctx, c.client[0], append(c.client[1:len(c.client):len(c.client)], addr)...).
						CombinedOutput()
					if want := fmt.Sprintf(conformed, "plain") + fmt.Sprintf(conformed, "gzip"); err != nil || string(out) != want {
						t.Errorf("%v; it printed\n%s\nand should have printed\n%s", err, out, want)
					}
				})
			}
		}
	}
}

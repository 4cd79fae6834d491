package behaviour_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/abate-go/abate/importer/awssdk"
	"github.com/abate-go/abate/importer/source"
	"github.com/abate-go/abate/internal/needs"
	"github.com/abate-go/abate/topology"
)

// lists asks an AWS service at each address for something once. Waits between tries are left out: how long they are is
// drawn at random.
const lists = `
import sys, time, boto3
time.sleep = lambda _: None
for url in sys.argv[1:]:
    c = boto3.client("sqs", endpoint_url=url, region_name="eu-west-1", aws_access_key_id="x", aws_secret_access_key="y")
    try:
        c.list_queues()
    except Exception as e:
        print(url, e)
`

var listed = map[string]topology.Outcome{"503": topology.S503, "500": topology.S500, "502": topology.S502,
	"504": topology.S504, "403": topology.S4xx}

// The SDK for Python tries as often as the importer says of the same environment.
func TestTheAWSSDKTriesAsItsImporterSays(t *testing.T) {
	if testing.Short() {
		return // each case starts Python
	}
	python := needs.Python(t, "boto3")
	var mu sync.Mutex
	got := map[string]int{}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		status := strings.Split(r.URL.Path, "/")[1]
		mu.Lock()
		got[status]++
		mu.Unlock()
		code, _ := strconv.Atoi(status)
		w.WriteHeader(code)
	}))
	defer server.Close()
	for _, env := range []string{"AWS_RETRY_MODE=standard", "AWS_RETRY_MODE=standard AWS_MAX_ATTEMPTS=1",
		"AWS_RETRY_MODE=standard AWS_MAX_ATTEMPTS=5", "AWS_RETRY_MODE=adaptive", "AWS_MAX_ATTEMPTS=2",
		"AWS_RETRY_MODE=legacy AWS_MAX_ATTEMPTS=4"} {
		var list strings.Builder
		for _, one := range strings.Fields(env) {
			fmt.Fprintf(&list, "    - %s\n", one)
		}
		docs, _ := source.YAML("compose.yaml", []byte("services:\n  shop:\n    image: x\n    environment:\n"+list.String()))
		layer := awssdk.Read(docs, source.Assume{}).Calls[0].Layers[0]
		mu.Lock()
		clear(got)
		mu.Unlock()
		args := []string{"-c", lists}
		for status := range listed {
			args = append(args, server.URL+"/"+status)
		}
		cmd := exec.CommandContext(context.Background(), python, args...)
		own := slices.DeleteFunc(os.Environ(), func(v string) bool { return strings.HasPrefix(v, "AWS_") })
		cmd.Env = append(append(own, strings.Fields(env)...), "HOME="+t.TempDir(), "NO_PROXY=127.0.0.1",
			"no_proxy=127.0.0.1")
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		mu.Lock()
		for status, outcome := range listed {
			if want := layer.Tries(outcome, topology.Unsafe).N; got[status] != want {
				t.Errorf("%s, %s: %d tries, and the importer says %d\n%s", env, status, got[status], want, out)
			}
		}
		mu.Unlock()
	}
}

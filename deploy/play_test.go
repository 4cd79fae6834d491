package deploy_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// ready is what the proxy prints when it can be asked.
var ready = regexp.MustCompile(`admin on (http://\S+)`)

// play does what Kubernetes would: it starts the container's arguments on the ConfigMap, with the variables that Go
// itself reads, asks what the probes and Prometheus ask, and ends it. Only the folder and the addresses are others.
func (w *workload) play(t *testing.T, binary string, policy map[string]string) error {
	dir := t.TempDir()
	for name, text := range policy {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			return err
		}
	}
	args := slices.Clone(w.abate.Args)
	for i, arg := range args {
		switch arg {
		case w.flags.policy:
			args[i] = filepath.Join(dir, filepath.Base(arg))
		case w.flags.listen, w.flags.admin:
			args[i] = "127.0.0.1:0"
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, binary, args...)
	cmd.Env = []string{
		"GOMEMLIMIT=" + strconv.FormatInt(softLimit(w.abate), 10), "GOMAXPROCS=" + env(w.abate, "GOMAXPROCS").Value,
	}
	var said strings.Builder
	cmd.Stderr = &said
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		return err
	}
	admin, err := address(out)
	if err == nil {
		err = w.ask(ctx, admin)
		err = errors.Join(err, cmd.Process.Signal(syscall.SIGTERM))
	}
	_, _ = io.Copy(io.Discard, out) // until it has ended
	if err = errors.Join(err, cmd.Wait()); err != nil {
		return fmt.Errorf("%w: %s", err, said.String())
	}
	return nil
}

// address waits for the line with the admin address.
func address(out io.Reader) (string, error) {
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		if m := ready.FindStringSubmatch(lines.Text()); m != nil {
			return m[1], nil
		}
	}
	return "", errors.New("did not start")
}

// ask makes the requests of the probes and of Prometheus.
func (w *workload) ask(ctx context.Context, admin string) error {
	paths := []string{w.deploy.Spec.Template.Annotations["prometheus.io/path"]}
	for _, probe := range []*corev1.Probe{w.abate.StartupProbe, w.abate.ReadinessProbe, w.abate.LivenessProbe} {
		paths = append(paths, probe.HTTPGet.Path)
	}
	for _, path := range paths {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, admin+path, http.NoBody)
		if err != nil {
			return err
		}
		response, err := http.DefaultTransport.RoundTrip(request)
		if err != nil {
			return err
		}
		text, err := io.ReadAll(response.Body)
		response.Body.Close()
		if err != nil || response.StatusCode != http.StatusOK || len(text) == 0 {
			return fmt.Errorf("GET %s: %s, %d bytes, error %v", path, response.Status, len(text), err)
		}
	}
	return nil
}

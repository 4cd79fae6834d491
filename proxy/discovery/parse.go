package discovery

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"strconv"

	"go.yaml.in/yaml/v3"
)

// group is one entry of a file in the form of Prometheus' file_sd.
type group struct {
	Targets []string          `yaml:"targets"`
	Labels  map[string]string `yaml:"labels"`
}

// errEmpty is a file without a target. It changes nothing: a file that is being replaced is empty for a moment.
var errEmpty = errors.New(`it has no targets: write one at least, as in [{"targets": ["10.0.0.5:8080"]}]`)

// Parse reads a file in the form of Prometheus' file_sd, JSON or YAML: a list of {targets, labels}. A target is
// host:port. The labels zone and weight (1 to 1000) are those of its targets; others are left alone. A target that is
// listed twice counts once, the first time. All mistakes are reported, joined.
func Parse(data []byte) ([]Endpoint, error) {
	var groups []group
	d := yaml.NewDecoder(bytes.NewReader(data))
	d.KnownFields(true)
	switch err := d.Decode(&groups); {
	case err == io.EOF:
		return nil, errEmpty
	case err != nil:
		return nil, fmt.Errorf("it is not a list of {targets: [...], labels: {...}}: %w", err)
	}
	var list []Endpoint
	var wrong []error
	for i, g := range groups {
		weight, err := weightOf(g.Labels)
		if err != nil {
			wrong = append(wrong, fmt.Errorf("entry %d: %w", i+1, err))
		}
		for _, target := range g.Targets {
			host, port, err := net.SplitHostPort(target)
			if n, bad := strconv.Atoi(port); err != nil || host == "" || bad != nil || n < 1 || n > 65535 {
				wrong = append(wrong, fmt.Errorf(`entry %d: target %q is not host:port; for example "10.0.0.5:8080"`, i+1, target))
				continue
			}
			list = append(list, Endpoint{Addr: target, Zone: g.Labels["zone"], Weight: weight})
		}
	}
	if err := errors.Join(wrong...); err != nil {
		return nil, err
	}
	if len(list) == 0 {
		return nil, errEmpty
	}
	order(list)
	return slices.CompactFunc(list, func(a, b Endpoint) bool { return a.Addr == b.Addr }), nil
}

func weightOf(labels map[string]string) (int, error) {
	text, ok := labels["weight"]
	if !ok {
		return 0, nil
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 || n > maxWeight {
		return 0, fmt.Errorf("label weight %q is not a whole number from 1 to %d", text, maxWeight)
	}
	return n, nil
}

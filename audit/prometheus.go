package audit

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"

	"github.com/abate-go/abate/importer"
	"github.com/abate-go/abate/importer/metrics"
)

// Prometheus asks a Prometheus at an address, such as http://localhost:9090, who calls whom, and returns its answers as
// files. window is how far back it looks: "5m". client nil means http.DefaultClient.
func Prometheus(ctx context.Context, client *http.Client, address, window string) ([]importer.File, error) {
	if client == nil {
		client = http.DefaultClient
	}
	base, err := url.Parse(address)
	if err != nil || base.Host == "" {
		return nil, fmt.Errorf("%q is no address of a Prometheus; write for example http://localhost:9090", address)
	}
	var files []importer.File
	var errs []error
	for _, q := range metrics.Queries(window) {
		u := base.JoinPath("api/v1/query")
		u.RawQuery = url.Values{"query": {q.Text}}.Encode()
		data, err := get(ctx, client, u.String())
		if unanswered := (*url.Error)(nil); errors.As(err, &unanswered) && len(files)+len(errs) == 0 {
			return nil, fmt.Errorf("the Prometheus at %s does not answer: %w", address, unanswered.Err)
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", q.Name, err))
			continue
		}
		files = append(files, importer.File{Name: "Prometheus (" + q.Name + ")", Data: data})
	}
	return files, errors.Join(errs...)
}

func get(ctx context.Context, client *http.Client, address string) ([]byte, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, address, http.NoBody)
	if err != nil {
		return nil, err
	}
	answer, err := client.Do(request)
	if err != nil {
		return nil, err
	}
	defer answer.Body.Close()
	data, err := io.ReadAll(io.LimitReader(answer.Body, importer.MaxBytes+1))
	if err == nil && answer.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %.200s", answer.Status, strings.TrimSpace(string(data)))
	}
	return data, err
}

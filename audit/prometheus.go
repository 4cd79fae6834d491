package audit

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/abate-go/abate/importer"
	"github.com/abate-go/abate/importer/metrics"
)

// Prometheus asks a Prometheus at an address, such as http://localhost:9090, who calls whom, and returns its answers as
// files. window is how far back it looks: "5m"; see CheckWindow. client nil means http.DefaultClient.
func Prometheus(ctx context.Context, client *http.Client, address, window string) ([]importer.File, error) {
	if err := CheckWindow(window); err != nil {
		return nil, err
	}
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

// units of a time as Prometheus writes it, the largest first, as it wants them.
var units = []struct {
	name string
	of   time.Duration
}{{"y", 365 * 24 * time.Hour}, {"w", 7 * 24 * time.Hour}, {"d", 24 * time.Hour}, {"h", time.Hour}, {"m", time.Minute},
	{"s", time.Second}, {"ms", time.Millisecond}}

var promTime = regexp.MustCompile(`^(?:(\d{1,9})y)?(?:(\d{1,9})w)?(?:(\d{1,9})d)?(?:(\d{1,9})h)?(?:(\d{1,9})m)?` +
	`(?:(\d{1,9})s)?(?:(\d{1,9})ms)?$`)

// CheckWindow returns an error if a text is no time, as Prometheus writes it, over which rates can be asked for: from a
// second to a year.
func CheckWindow(window string) error {
	parts := promTime.FindStringSubmatch(window)
	total := 0.0
	for i, unit := range units {
		if parts != nil && parts[i+1] != "" {
			n, _ := strconv.Atoi(parts[i+1]) // it has nine digits at most
			total += float64(n) * unit.of.Seconds()
		}
	}
	if most := units[0].of.Seconds(); total < 1 || total > most {
		return fmt.Errorf("%q is no time to look back; write one from 1s to 1y as Prometheus does, for example 5m or 1h30m",
			window)
	}
	return nil
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

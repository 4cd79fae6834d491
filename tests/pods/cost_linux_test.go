package pods_test

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
)

// A connection to PostgreSQL, opened, used for one statement and closed: how much of a processor the server spends on
// it.
func BenchmarkPostgresConnection(b *testing.B) {
	s := startPostgres(b, 100)
	before := serverTicks(b, s)
	for b.Loop() {
		conn, err := pgx.Connect(b.Context(), s.dsn())
		if err == nil {
			_, err = conn.Exec(b.Context(), "SELECT 1")
			_ = conn.Close(b.Context())
		}
		if err != nil {
			b.Fatal(err)
		}
	}
	// The last few processes may not have been waited for yet. A tick of /proc is 10 ms.
	b.ReportMetric(10*float64(serverTicks(b, s)-before)/float64(b.N), "server-ms/conn")
}

// serverTicks is the processor time of a server and of those of its children that have ended.
func serverTicks(b *testing.B, s *process) (sum int) {
	b.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", s.cmd.Process.Pid))
	if err != nil {
		b.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(text), ") ") // after the name, which may have spaces
	for _, field := range strings.Fields(rest)[11:15] {
		n, err := strconv.Atoi(field)
		if err != nil {
			b.Fatal(err)
		}
		sum += n
	}
	return sum
}

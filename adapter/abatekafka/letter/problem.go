package letter

import (
	"bytes"
	"fmt"

	"github.com/twmb/franz-go/pkg/kgo"
)

// newProblem says where, what and what became of it.
func newProblem(r *kgo.Record, header, format string, args ...any) error {
	where := fmt.Sprintf("%s, header %s: ", Place{r.Topic, r.Partition, r.Offset}, header)
	return fmt.Errorf(where+"%w", fmt.Errorf(format, args...))
}

func validText(b []byte) []byte { return bytes.ToValidUTF8(b, []byte("�")) }

package dlq

import (
	"bufio"
	"context"
	"fmt"
	"io"
)

// Export writes what f chooses as JSON lines, see Line, and says how many. It changes nothing and leaves no audit
// record.
func (d *Desk) Export(ctx context.Context, f Filter, w io.Writer) (n int, err error) {
	out := bufio.NewWriterSize(w, 64<<10)
	failed := d.Each(ctx, f, func(e *Entry) bool {
		var text []byte
		if text, err = plainJSON(NewLine(e)); err == nil {
			_, err = out.Write(append(text, '\n'))
		}
		if err == nil {
			n++
		}
		return err == nil
	})
	if err == nil {
		err = out.Flush()
	}
	if err != nil {
		return n, fmt.Errorf("dlq: write the lines: %w", err)
	}
	return n, failed
}

package cli

import (
	"bytes"
	"fmt"
	"io"
)

// ToStdout is the name of a file that means standard output.
const ToStdout = "-"

// Output writes the file of a flag, whole or not at all; no name means that it was not asked for.
func Output(stdout io.Writer, flag, file string, form func(io.Writer) error) error {
	if file == "" {
		return nil
	}
	var text bytes.Buffer
	err := form(&text)
	switch {
	case err != nil:
	case file == ToStdout:
		_, err = stdout.Write(text.Bytes())
	default:
		err = ReplaceFile(file, text.Bytes())
	}
	if err != nil {
		return fmt.Errorf("--%s %s was not written: %w", flag, file, err)
	}
	return nil
}

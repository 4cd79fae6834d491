package dlq

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

const (
	longestLine  = 256 << 20 // bytes
	mostProblems = 50        // that are told of a file
)

// Import writes exported lines into the dead-letter topic as new dead letters, in one transaction with the audit
// record: all or none. Before that it reads all lines; the error tells of every one that is wrong. The same lines are
// imported a second time only if again is set. Letters keep their partition where the topic has it. The user needs the
// right to write with transactional ids that begin with abate-dlq-import-.
func (d *Desk) Import(ctx context.Context, r io.ReadSeeker, again bool) (int, error) {
	n, sum, err := checkLines(r)
	if err != nil {
		return 0, err
	}
	if err := d.audit.sync(ctx); err != nil {
		return 0, err
	}
	if err := d.notYet(sum, again); err != nil {
		return 0, fmt.Errorf("dlq: %w", err)
	}
	if n == 0 {
		return 0, nil
	}
	if _, err := r.Seek(0, io.SeekStart); err != nil {
		return 0, fmt.Errorf("dlq: read the lines a second time: %w", err)
	}
	if err := d.audit.create(ctx); err != nil {
		return 0, err
	}
	last, err := d.importAll(ctx, r, &Action{Kind: Imported, ID: random("import-"), Count: n, Hash: sum}, again)
	if err != nil {
		return 0, fmt.Errorf("dlq: import: nothing was imported: %w", err)
	}
	if err := d.committed(ctx, last); err != nil {
		return n, fmt.Errorf("dlq: the letters are imported, but cannot be read yet: %w", err)
	}
	return n, d.audit.sync(ctx)
}

// committed waits until readers see what a transaction has written: the broker answers its end before every partition
// knows of it. last are the last offsets by topic and partition.
func (d *Desk) committed(ctx context.Context, last map[string]map[int32]int64) error {
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	for topic, offsets := range last {
		for {
			bounds, err := d.bounds(ctx, topic)
			if err != nil {
				return err
			}
			behind := false
			for partition, offset := range offsets {
				behind = behind || bounds[partition].to <= offset
			}
			if !behind {
				break
			}
			if err := sleep(ctx, 10*time.Millisecond); err != nil {
				return err
			}
		}
	}
	return nil
}

// beginAlone begins a transaction that no other import of the same lines runs beside: they share a transactional id, so
// that who comes later ends what the earlier one has not committed, and finds in the audit what it has.
func (d *Desk) beginAlone(ctx context.Context, client *kgo.Client, sum string, again bool) error {
	if _, _, err := client.ProducerID(ctx); err != nil {
		return fmt.Errorf("begin a transaction: %w", err)
	}
	if err := d.audit.sync(ctx); err != nil {
		return err
	}
	if err := d.notYet(sum, again); err != nil {
		return err
	}
	return client.BeginTransaction()
}

// notYet is an error if these lines were imported already and are not to be again.
func (d *Desk) notYet(sum string, again bool) error {
	at, was := d.ledger.imported(sum)
	if !was || again {
		return nil
	}
	return fmt.Errorf("these lines were imported already, at %s: importing them again makes every letter twice; if that "+
		"is meant, say so (--again)", at.UTC().Format(time.RFC3339))
}

// importAll sends the lines and the audit record in one transaction, and returns the last offsets by topic and
// partition.
func (d *Desk) importAll(
	ctx context.Context, r io.Reader, note *Action, again bool,
) (map[string]map[int32]int64, error) {
	client, err := kgo.NewClient(d.config.options(
		kgo.TransactionalID("abate-dlq-import-"+d.config.Topic+"-"+note.Hash[:32]), kgo.TransactionTimeout(10*time.Minute),
		kgo.RecordPartitioner(partitioner{}), kgo.RecordDeliveryTimeout(30*time.Second),
		kgo.ProducerBatchMaxBytes(d.batchBytes()), kgo.MaxBufferedBytes(64<<20),
	)...)
	if err != nil {
		return nil, err
	}
	defer client.Close()
	if err := d.beginAlone(ctx, client, note.Hash, again); err != nil {
		return nil, err
	}
	var mu sync.Mutex
	var failed error
	last := map[string]map[int32]int64{d.config.Topic: {}, d.config.Audit: {}}
	produce := func(r *kgo.Record) error {
		client.Produce(ctx, r, func(r *kgo.Record, err error) {
			mu.Lock()
			defer mu.Unlock()
			if err != nil && failed == nil {
				failed = fmt.Errorf("write to %s/%d: %w", r.Topic, r.Partition, err)
			}
			last[r.Topic][r.Partition] = max(last[r.Topic][r.Partition], r.Offset)
		})
		mu.Lock()
		defer mu.Unlock()
		return failed
	}
	err = eachLine(r, nil, func(_ int, text []byte) error {
		line, err := parseLine(text)
		if err != nil {
			return fmt.Errorf("the lines have changed meanwhile: %w", err)
		}
		return produce(line.record(d.config.Topic, note.ID))
	})
	if err == nil {
		// first: from the audit record on until the end nobody can read the audit, and whoever
		// is killed there blocks it for minutes
		err = client.Flush(ctx)
	}
	if err == nil {
		err = produce(d.audit.record(ctx, note))
	}
	if err == nil {
		err = client.Flush(ctx)
	}
	mu.Lock()
	err = errors.Join(err, failed)
	mu.Unlock()
	return last, endImport(ctx, client, err)
}

// endImport ends an import's transaction: it commits, or aborts after an error, and returns the error.
func endImport(ctx context.Context, client *kgo.Client, err error) error {
	end := kgo.TryCommit
	if err != nil {
		end = kgo.TryAbort
		_ = client.AbortBufferedRecords(ctx) // the transaction ends without them
	}
	ending, cancel := context.WithTimeout(context.WithoutCancel(ctx), 30*time.Second)
	defer cancel()
	if ended := client.EndTransaction(ending, end); ended != nil && err == nil {
		return fmt.Errorf("or all of it was, which is not known, as the end of the transaction was not answered: look "+
			"with \"abate dlq ls\" before you try again: %w", ended)
	}
	return err
}

// batchBytes is the largest batch that the topic takes; the client's default if that is not known.
func (d *Desk) batchBytes() int32 {
	if d.maxMessage > 0 {
		return int32(min(d.maxMessage, 100<<20))
	}
	return 1_000_012
}

// checkLines reads all lines, counts them and tells of all that are wrong.
func checkLines(r io.Reader) (n int, sum string, err error) {
	var wrong []error
	more := 0
	h := sha256.New()
	err = eachLine(r, h, func(number int, text []byte) error {
		n++
		if _, err := parseLine(text); err != nil && len(wrong) < mostProblems {
			wrong = append(wrong, fmt.Errorf("dlq: line %d: %w", number, err))
		} else if err != nil {
			more++
		}
		return nil
	})
	if more > 0 {
		wrong = append(wrong, fmt.Errorf("dlq: %d more lines are wrong", more))
	}
	if len(wrong) > 0 {
		wrong = append(wrong, errors.New("dlq: nothing was imported"))
	}
	if err != nil {
		wrong = append(wrong, fmt.Errorf("dlq: read the lines: %w", err))
	}
	return n, hex.EncodeToString(h.Sum(nil)), errors.Join(wrong...)
}

// eachLine calls fn for every line that is not empty, numbered from 1, and hashes them.
func eachLine(r io.Reader, h hash.Hash, fn func(number int, text []byte) error) error {
	in := bufio.NewReaderSize(r, 64<<10)
	var long []byte
	for number := 1; ; {
		part, err := in.ReadSlice('\n')
		if errors.Is(err, bufio.ErrBufferFull) {
			if long = append(long, part...); len(long) > longestLine {
				return fmt.Errorf("line %d is longer than %d MB", number, longestLine>>20)
			}
			continue
		}
		if err != nil && err != io.EOF {
			return err
		}
		text := bytes.TrimSpace(append(long, part...))
		if len(text) > 0 {
			if h != nil {
				h.Write(text)
				h.Write([]byte("\n"))
			}
			if err := fn(number, text); err != nil {
				return err
			}
		}
		if err == io.EOF {
			return nil
		}
		number++
		long = nil // fn may keep what it was given
	}
}

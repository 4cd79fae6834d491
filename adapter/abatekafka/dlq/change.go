package dlq

import "context"

const auditAtOnce = 500

// Delete marks what f chooses as deleted, and says how many those were. The letters stay in the topic, and can be
// restored, until its retention takes them. With an error, those that were counted are deleted.
func (d *Desk) Delete(ctx context.Context, f Filter) (int, error) {
	return d.mark(ctx, f, Delete, Deleted)
}

// Restore takes back what was done to letters: deleted ones wait again, or are replayed if they were that before;
// replayed ones, if f.State says so, wait again. An empty f.State means Deleted here.
func (d *Desk) Restore(ctx context.Context, f Filter) (int, error) {
	if f.State == "" {
		f.State = Deleted
	}
	return d.mark(ctx, f, Restore, Waiting)
}

// mark writes an action for each letter that f chooses and that is not in the state already.
func (d *Desk) mark(ctx context.Context, f Filter, kind Kind, to State) (n int, err error) {
	id := random(string(kind) + "-")
	var pending []*Action
	write := func() bool {
		if len(pending) > 0 {
			if err = d.audit.append(ctx, pending...); err == nil {
				n += len(pending)
			}
			pending = nil
		}
		return err == nil
	}
	failed := d.Each(ctx, f, func(e *Entry) bool {
		if e.State == to {
			return true
		}
		pending = append(pending, &Action{Kind: kind, ID: id, Place: e.At.String(), Twin: e.twin.String()})
		if len(pending) < auditAtOnce {
			return true
		}
		return write()
	})
	if failed == nil && err == nil {
		write()
	}
	if err == nil {
		err = failed
	}
	return n, err
}

package dlq

import (
	"context"
	"fmt"
	"slices"

	"github.com/twmb/franz-go/pkg/kadm"
)

// readers finds the groups that have committed offsets of these partitions, for letters that do not say which group
// failed at them, or go elsewhere. Those with members count, if there are any.
func (x *replaying) readers(ctx context.Context, lanes []lane) ([]string, error) {
	groups, err := x.d.admin.ListGroups(ctx)
	if err != nil {
		return nil, fmt.Errorf("dlq: ask which groups there are: %w: name the one that reads with Reader (--reader)", err)
	}
	var all, alive []string
	for _, group := range groups.Groups() {
		offsets, err := x.d.admin.FetchOffsets(ctx, group)
		if err != nil {
			continue // one of which this user may know nothing
		}
		if slices.ContainsFunc(lanes, func(at lane) bool {
			o, ok := offsets.Lookup(at.topic, at.partition)
			return ok && o.At >= 0
		}) {
			all = append(all, group)
			if members(ctx, x.d.admin, []string{group}) != nobody {
				alive = append(alive, group)
			}
		}
	}
	if len(alive) > 0 {
		return alive, nil
	}
	return all, nil
}

// attendance is whether groups have members.
type attendance int

const (
	somebody attendance = iota
	nobody
	// the broker does not describe groups of a newer protocol so, nor those that this user may not see, nor those that
	// never were
	notTold
)

// members reports whether any of the groups has a member.
func members(ctx context.Context, admin *kadm.Client, groups []string) attendance {
	described, err := admin.DescribeGroups(ctx, groups...)
	if err != nil || len(groups) == 0 {
		return notTold
	}
	is := nobody
	for _, group := range groups {
		switch g, ok := described[group]; {
		case !ok || g.Err != nil || g.State == "Dead":
			is = notTold
		case g.State != "Empty":
			return somebody
		}
	}
	return is
}

// reader is the group that is to read a letter where it goes.
func (r *Replay) reader(e *Entry, to string) string {
	switch {
	case r.Reader != "":
		return r.Reader
	case to == e.Letter.Original.Topic:
		return e.Letter.Group
	}
	return ""
}

package abatekafka

import (
	"context"
	"slices"
	"strings"

	"github.com/twmb/franz-go/pkg/kadm"
)

// checkGroups looks for other groups that read the same retry topics: each would get what the others failed at. They
// are known by their names, which end like those of our own, and by having committed offsets there. A group that may
// not be seen is not found.
func (p *preflight) checkGroups(ctx context.Context, seen map[string]*seenTopic) {
	admin := kadm.NewClient(p.client)
	listed, err := admin.ListGroups(ctx)
	if err != nil && len(listed) == 0 {
		p.note("groups cannot be listed, so nobody has checked that no other group reads these retry topics: %v", err)
		return
	}
	others := p.others(listed.Groups(), seen)
	running := len(others) > 0 && p.hasRun(ctx, admin)
	for group, commits := range admin.FetchManyOffsets(ctx, others...) {
		if commits.Err != nil {
			continue
		}
		for _, chain := range p.chains {
			for _, hop := range chain.Hops {
				switch {
				case !committed(commits.Fetched[hop.Topic]) || group == hop.Group:
				case running: // it has lived with it, and must be able to start again
					p.note("topic %s is read by group %s, too: each reads what the other failed at, and passes over it. "+
						"kafka.groupInNames gives this one %s", hop.Topic, group, p.ownNames(chain))
				default:
					p.problem("topic %s is read by group %s, too: each group would read what the other failed at. "+
						"Set kafka.groupInNames, which gives this one %s, or if that group is gone, and nothing of it waits there "+
						"any more (what does is passed over), run: %s", hop.Topic, group, p.ownNames(chain),
						p.command("kafka-consumer-groups.sh", "--delete --group %s", group))
				}
			}
		}
	}
}

// hasRun reports whether this group has consumed these topics before. The other group may have come since: of two that
// begin together neither sees the other.
func (p *preflight) hasRun(ctx context.Context, admin *kadm.Client) bool {
	own, err := admin.FetchOffsets(ctx, p.group)
	return err == nil && slices.ContainsFunc(p.chains, func(c Chain) bool { return committed(own[c.Topic]) })
}

// others are the groups named like those of our retry topics, but not ours.
func (p *preflight) others(all []string, seen map[string]*seenTopic) []string {
	var found []string
	for _, chain := range p.chains {
		for _, hop := range chain.Hops {
			suffix := strings.TrimPrefix(hop.Group, chain.Group)
			for _, group := range all {
				other := seen[hop.Topic] != nil && group != hop.Group && strings.HasSuffix(group, suffix)
				if other && !slices.Contains(found, group) {
					found = append(found, group)
				}
			}
		}
	}
	return found
}

func committed(partitions map[int32]kadm.OffsetResponse) bool {
	for _, c := range partitions {
		if c.Err == nil && c.At >= 0 {
			return true
		}
	}
	return false
}

// ownNames shows what the first retry topic is called with the group in its name.
func (p *preflight) ownNames(chain Chain) string {
	c := p.cfg
	c.GroupInNames = true
	if own := NewChain(chain.Topic, chain.Group, c); len(own.Hops) > 0 {
		return own.Hops[0].Topic
	}
	return "names of its own"
}

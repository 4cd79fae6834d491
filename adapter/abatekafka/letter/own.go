package letter

import "strconv"

// own reads Abate's headers, after Spring's. Where Spring has forwarded the record since, its word on the failure
// holds: both are written with the same number of attempts, and only Spring has counted on.
func (rd *reader) own(l *Letter) {
	l.First = rd.time(headFirst)
	l.ID = rd.text(headID)
	_, hops, _ := cutLast(l.ID, '/')
	if n, err := strconv.ParseInt(hops, 10, 32); err == nil && n > 0 {
		l.Hops = int(n)
	}
	if s := rd.text(headHistory); s != "" {
		var bad int
		if l.History, bad = parseHistory(s); bad > 0 {
			rd.problem(headHistory, "%d of its lines do not read: time, topic, class; they are left out", bad)
		}
	}
	where, pointer := rd.values[headPointer]
	l.Pointer = pointer && rd.rec.Value == nil // else somebody has given it a value: in a line of an export
	if pointer && string(where) != lost {
		if at := rd.place(headPointer); at.Known() && !l.Original.Known() {
			l.Original = at
		}
	}
	failures, ok := rd.number(headFailures)
	attempts, byBoth := readAttempts(rd.values[springAttempts])
	if ok && byBoth && attempts != int(springNumber(failures)) || !ok && byBoth {
		l.ID = springID(l)
		return
	}
	l.Failures, l.Delivery = failures, failures+1
	l.Due, l.Last = rd.time(headDue), rd.time(headLast)
	l.Reason = rd.text(headReason)
}

// springID is the identity of a forward by Spring, which gives it none: its attempts grow with each.
func springID(l *Letter) string {
	if !l.Original.Known() {
		return ""
	}
	return l.Group + "/" + l.Original.String() + "/attempt-" + strconv.Itoa(l.Delivery)
}

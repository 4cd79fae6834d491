package h1

import "unsafe"

// AppendFields is the function of that name for fields of r, and writes the same bytes. Those that stand in the head
// one behind the other, in the form in which they are written, it copies at once: so most clients send all of theirs.
func (r *Request) AppendFields(dst []byte, fields []Field) []byte {
	for len(fields) > 0 {
		lines, n := r.run(fields)
		if n == 0 {
			lines, n = nil, 1
			dst = AppendFields(dst, fields[:1])
		}
		dst = append(dst, lines...)
		fields = fields[n:]
	}
	return dst
}

// run returns the lines of the first n fields, if they stand in the head of r one behind the other just as they would
// be written. It compares where they lie and what stands between them, and does not rely on what was done to the
// fields since they were parsed.
func (r *Request) run(fields []Field) (lines []byte, n int) {
	all := r.lines
	start := offset(all, fields[0].Name)
	end := start
	for ; n < len(fields); n++ {
		f := &fields[n]
		colon := end + len(f.Name)
		value := colon + len(": ")
		stop := value + len(f.Value) + len("\r\n")
		if stop > len(all) || !begins(all[end:], f.Name) || len(f.Value) > 0 && !begins(all[value:], f.Value) ||
			all[colon] != ':' || all[colon+1] != ' ' || all[stop-2] != '\r' || all[stop-1] != '\n' {
			break
		}
		end = stop
	}
	return all[start:end], n
}

// offset is where in all the bytes of part lie; len(all) if they do not.
func offset(all, part []byte) int {
	at := uintptr(unsafe.Pointer(unsafe.SliceData(part))) - uintptr(unsafe.Pointer(unsafe.SliceData(all)))
	return int(min(at, uintptr(len(all))))
}

// begins reports whether all begins with the very bytes of part, and not with others like them.
func begins(all, part []byte) bool { return unsafe.SliceData(all) == unsafe.SliceData(part) }

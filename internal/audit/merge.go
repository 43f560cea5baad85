package audit

// MergeOutcomes copies the outcome in each Done record into the record of its call, and returns the records without
// these Done records. Calls are in the order in which they began; other records are unchanged. A call whose Done
// record is missing remains as it is, and so does a Done record whose call is missing. If a call was sent to several
// servers one after the other, the record of the last server replaces the earlier ones.
func MergeOutcomes(records []Record) []Record {
	out := make([]Record, 0, len(records))
	begun := map[string]int{}
	for _, r := range records {
		i, known := begun[r.ID]
		switch {
		case r.Kind == Call && known && out[i].Outcome == "":
			// A call that was sent to several servers, one after the other: the last record replaces the earlier ones.
			r.At = out[i].At
			out[i] = r
		case r.Kind == Call, r.Kind == AdminAction:
			begun[r.ID] = len(out)
			out = append(out, r)
		case r.Kind == Done && known:
			out[i].Outcome, out[i].Code, out[i].Duration, out[i].Bytes = r.Outcome, r.Code, r.Duration, r.Bytes
		default:
			out = append(out, r)
		}
	}
	return out
}

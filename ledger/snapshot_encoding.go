package ledger

import (
	"encoding/json"
	"fmt"
	"time"
)

// An encodedSnapshot is the stored form of a snapshot.
type encodedSnapshot struct {
	HighWater uint64         `json:"highWater"`
	Live      []encodedEntry `json:"live"`
}

// An encodedEntry is the stored form of a live entry. Body is the body of the entry's record.
type encodedEntry struct {
	Seq  uint64  `json:"seq"`
	At   int64   `json:"at"` // milliseconds since 1970, the precision of journals
	Key  CardKey `json:"key"`
	Body []byte  `json:"body"`
}

// Encode returns the snapshot in the form that DecodeSnapshot reads. It returns an error for an entry that EncodeEntry
// rejects.
func (s Snapshot) Encode() ([]byte, error) {
	kept := encodedSnapshot{HighWater: s.highWater, Live: make([]encodedEntry, 0, len(s.live))}
	for _, e := range s.live {
		r, err := EncodeEntry(e)
		if err != nil {
			return nil, err
		}
		kept.Live = append(kept.Live, encodedEntry{e.Seq, e.At.UnixMilli(), e.Key, r.Body})
	}
	return json.Marshal(kept)
}

// DecodeSnapshot returns the snapshot that Encode wrote, with the entries in the same order. Other text is an error.
func DecodeSnapshot(text []byte) (Snapshot, error) {
	var kept encodedSnapshot
	if err := json.Unmarshal(text, &kept); err != nil {
		return Snapshot{}, fmt.Errorf("read snapshot: %w", err)
	}
	s := Snapshot{live: make([]Entry, 0, len(kept.Live)), places: make(map[CardKey]int, len(kept.Live)),
		highWater: kept.HighWater}
	for _, k := range kept.Live {
		e, err := DecodeRecord(Record{Seq: k.Seq, At: time.UnixMilli(k.At).UTC(), Kind: string(OpEnrol),
			Key: string(k.Key), Body: k.Body})
		if _, twice := s.places[k.Key]; err != nil || twice || k.Seq > kept.HighWater {
			return Snapshot{}, fmt.Errorf("read snapshot: entry %d is invalid", k.Seq)
		}
		s.places[k.Key] = len(s.live)
		s.live = append(s.live, e)
	}
	return s, nil
}

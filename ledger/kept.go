package ledger

import (
	"encoding/json"
	"fmt"
	"time"
)

// A keptSnapshot is a snapshot as it is written down.
type keptSnapshot struct {
	HighWater uint64      `json:"highWater"`
	Live      []keptEntry `json:"live"`
}

// A keptEntry is the entry by which a card is live: the body is its record's.
type keptEntry struct {
	Seq  uint64 `json:"seq"`
	At   int64  `json:"at"` // milliseconds since 1970, as journals have it
	Key  Key    `json:"key"`
	Body []byte `json:"body"`
}

// Text writes the snapshot for ReadSnapshot. The error is for an entry that no journal would take.
func (s Snapshot) Text() ([]byte, error) {
	kept := keptSnapshot{HighWater: s.highWater, Live: make([]keptEntry, 0, len(s.live))}
	for _, e := range s.live {
		r, err := Encode(e)
		if err != nil {
			return nil, err
		}
		kept.Live = append(kept.Live, keptEntry{e.Seq, e.At.UnixMilli(), e.Key, r.Body})
	}
	return json.Marshal(kept)
}

// ReadSnapshot reads what Text wrote: what is live, in its order. The error is for anything else.
func ReadSnapshot(text []byte) (Snapshot, error) {
	var kept keptSnapshot
	if err := json.Unmarshal(text, &kept); err != nil {
		return Snapshot{}, fmt.Errorf("read a snapshot: %w", err)
	}
	s := Snapshot{live: make([]Entry, 0, len(kept.Live)), places: make(map[Key]int, len(kept.Live)), highWater: kept.HighWater}
	for _, k := range kept.Live {
		e, err := Decode(Record{Seq: k.Seq, At: time.UnixMilli(k.At).UTC(), Kind: string(Enroll), Key: string(k.Key), Body: k.Body})
		if _, twice := s.places[k.Key]; err != nil || twice || k.Seq > kept.HighWater {
			return Snapshot{}, fmt.Errorf("read a snapshot: entry %d is none", k.Seq)
		}
		s.places[k.Key] = len(s.live)
		s.live = append(s.live, e)
	}
	return s, nil
}

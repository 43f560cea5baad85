package deck

import (
	"encoding/binary"
	"encoding/hex"
	"errors"
	"hash/maphash"
	"slices"

	"github.com/oklog/ulid/v2"

	"github.com/drawbridge-mcp/drawbridge"
)

// A Digest is a SHA-256. The zero value means that the digest is not known.
type Digest [32]byte

// String returns the digest in hexadecimal digits; empty for the zero value.
func (d Digest) String() string {
	if d == (Digest{}) {
		return ""
	}
	return hex.EncodeToString(d[:])
}

// MarshalText returns the hexadecimal digits.
func (d Digest) MarshalText() ([]byte, error) { return []byte(d.String()), nil }

// UnmarshalText reads hexadecimal digits, or an empty text for the zero value.
func (d *Digest) UnmarshalText(text []byte) error {
	*d = Digest{}
	if len(text) == 0 {
		return nil
	}
	if len(text) != hex.EncodedLen(len(d)) {
		return errors.New("a SHA-256 has 64 hexadecimal digits")
	}
	_, err := hex.Decode(d[:], text)
	return err
}

const (
	// sourceChunk is the number of sources that a sourceList allocates together. A slice that grows would have room for
	// up to a quarter more.
	sourceChunk = 64
	// MaxResultVersions is how many different results of one tool, prompt or resource a run keeps as sources. A further
	// one takes the place of the oldest, which counts as dropped. So a run that polls a tool does not lose its other
	// sources.
	MaxResultVersions = 100
)

// A sourceList has the sources of a run in little memory: digests and IDs are binary, and a name is stored once. The
// zero value is empty.
type sourceList struct {
	chunks [][]keptSource
	// first is the position of the oldest source, and end the position after the newest one.
	first, end int
	dropped    int
	// seed is the seed of the hashes. known has the hashes of the sources in the list. versions has the results of each
	// tool by the hash of its name.
	seed     maphash.Seed
	known    map[sourceHash]struct{}
	versions map[sourceHash]*resultVersions
	// words are the kinds and servers of the sources.
	words []string
}

// A sourceHash is a hash of 64 bits. As an array of bytes it needs half the memory of a uint64 in a set.
type sourceHash [8]byte

// A keptSource is a Source in a sourceList. Its kind and its server are indexes in the words of the list.
type keptSource struct {
	name         string
	digest       Digest
	call         ulid.ULID
	kind, server uint16
}

// A resultVersions has the positions of the results of one tool. If there are MaxResultVersions, next is the oldest.
type resultVersions struct {
	at   []int
	next int
}

// hash returns the hash of a source without its call. withDigest selects whether its digest counts.
func (l *sourceList) hash(s Source, withDigest bool) (hash sourceHash) {
	var h maphash.Hash
	h.SetSeed(l.seed)
	for _, text := range [...]string{s.Kind, s.Name, string(s.Server)} {
		_, _ = h.WriteString(text) // never fails
		_ = h.WriteByte(0)
	}
	if withDigest {
		_, _ = h.Write(s.Digest[:])
	}
	binary.NativeEndian.PutUint64(hash[:], h.Sum64())
	return hash
}

// add adds a source, unless the list has it. If the list has maxTrailSources sources, the oldest one is removed.
func (l *sourceList) add(s Source) {
	if l.known == nil {
		l.seed, l.known = maphash.MakeSeed(), map[sourceHash]struct{}{}
	}
	hash := l.hash(s, true)
	if _, ok := l.known[hash]; ok {
		return
	}
	l.known[hash] = struct{}{}
	kept := keptSource{s.Name, s.Digest, ulid.ULID{}, l.word(s.Kind), l.word(string(s.Server))}
	if id, err := ulid.ParseStrict(s.Call); err == nil {
		kept.call = id
	}
	if s.Kind == resultSource && !l.addVersion(s, kept) {
		return
	}
	l.append(kept)
}

// addVersion notes a result that will be appended. It returns false if the result has taken the place of an older
// result of the same tool.
func (l *sourceList) addVersion(s Source, kept keptSource) bool {
	if l.versions == nil {
		l.versions = map[sourceHash]*resultVersions{}
	}
	name := l.hash(s, false)
	v := l.versions[name]
	if v == nil {
		v = &resultVersions{}
		l.versions[name] = v
	}
	if len(v.at) < MaxResultVersions {
		v.at = append(v.at, l.end)
		return true
	}
	at := &v.at[v.next]
	v.next = (v.next + 1) % MaxResultVersions
	if *at < l.first { // it was removed
		*at = l.end
		return true
	}
	old := l.at(*at)
	delete(l.known, l.hash(l.source(*old), true))
	*old = kept
	l.dropped++
	return false
}

// append adds a source at the end.
func (l *sourceList) append(kept keptSource) {
	if l.end-l.first == maxTrailSources {
		delete(l.known, l.hash(l.source(*l.at(l.first)), true))
		*l.at(l.first) = keptSource{}
		l.first++
		l.dropped++
		if l.first%sourceChunk == 0 {
			l.chunks = slices.Delete(l.chunks, 0, 1)
		}
	}
	if l.end%sourceChunk == 0 {
		l.chunks = append(l.chunks, make([]keptSource, sourceChunk))
	}
	l.end++
	*l.at(l.end - 1) = kept
}

// at returns the source at a position.
func (l *sourceList) at(position int) *keptSource {
	i := position - l.first/sourceChunk*sourceChunk
	return &l.chunks[i/sourceChunk][i%sourceChunk]
}

// word returns the index of a word, which is added if it is new. All words after the first 65,535 are the last one: a
// run has few servers.
func (l *sourceList) word(text string) uint16 {
	i := slices.Index(l.words, text)
	if i < 0 && len(l.words) < 1<<16-1 {
		i, l.words = len(l.words), append(l.words, text)
	}
	if i < 0 {
		i = len(l.words) - 1
	}
	return uint16(i)
}

// source returns a source of the list.
func (l *sourceList) source(k keptSource) Source {
	s := Source{Kind: l.words[k.kind], Name: k.name, Server: drawbridge.ServerID(l.words[k.server]), Digest: k.digest}
	if k.call != (ulid.ULID{}) {
		s.Call = k.call.String()
	}
	return s
}

// since returns the sources at a position and after it.
func (l *sourceList) since(position int) (all []Source) {
	for i := max(position, l.first); i < l.end; i++ {
		all = append(all, l.source(*l.at(i)))
	}
	return all
}

package store

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"slices"
	"sync"

	"github.com/drawbridge-mcp/drawbridge/internal/audit"
	"github.com/drawbridge-mcp/drawbridge/internal/rawjson"
	"github.com/drawbridge-mcp/drawbridge/ledger"
	"github.com/klauspost/compress/zstd"
)

// A block is a row with consecutive records of one hash chain. Its body is one byte with the form, and then, compressed
// in the form blockZstd, the number of records, the records, and a check of each record: the first bytes of its hash in
// the chain. Of the last record, the row has the whole hash.
//
// A block with few records of calls that failed has them in a part of its own, so that they are found without unpacking
// the others. The body of such a block, in the form blockSplit, has the number of these records, their positions in the
// block, each as the difference to the one before, the length of their part, and both parts. A part has the form of a
// body.
//
// A record is a byte with flags, the difference of its time to that of the record before in milliseconds, its kind and
// its key, if they are not derived from the body, and the body. Numbers are varints. Texts follow their length.

const (
	// blockRecords and blockBytes limit the records of a block, and the sum of their sizes. A single record may be
	// larger.
	blockRecords, blockBytes = 512, 512 << 10
	// maxBlock is the maximum size of an uncompressed block.
	maxBlock = 64 << 20
	// checkLen is the length of a record's check.
	checkLen = 8
	// blockPlain, blockZstd and blockSplit are the forms of a block's body. A small block is not compressed.
	blockPlain, blockZstd, blockSplit = 1, 2, 3
	minCompressed                     = 512
	// A block is split if it has at least minSplit records, and at most one in splitShare belongs to a call that
	// failed.
	minSplit, splitShare = 64, 8
	// keyInBody is the flag of a record whose body begins with its key and its kind.
	keyInBody = 1
)

// errBlock is the error of a block that cannot be decoded.
var errBlock = errors.New("a block of the audit is damaged")

// A blockCodec encodes and decodes blocks. Its zero value is ready for use. It is safe for concurrent use.
type blockCodec struct {
	mu      sync.Mutex
	encoder *zstd.Encoder
	decoder *zstd.Decoder
	plain   []byte
}

// encode returns the body of a block. Only At, Kind, Key, Body and Hash of the records are used.
func (c *blockCodec) encode(records []ledger.Record) ([]byte, error) {
	return c.encodeSplit(records, failedIn(records))
}

// failedIn returns the positions of the records that belong to calls that failed, in order, or nil if the block is not
// split.
func failedIn(records []ledger.Record) (positions []int) {
	if len(records) < minSplit {
		return nil
	}
	var keys map[string]bool
	for i := range records {
		if mayHaveFailed([]byte(records[i].Kind), records[i].Body) {
			if keys == nil {
				keys = map[string]bool{}
			}
			keys[records[i].Key] = true
		}
	}
	if len(keys) == 0 || len(keys) > len(records)/splitShare {
		return nil
	}
	for i := range records {
		if keys[records[i].Key] {
			positions = append(positions, i)
		}
	}
	if len(positions) > len(records)/splitShare {
		return nil
	}
	return positions
}

// mayHaveFailed reports whether a record is that of a call that failed, or without an outcome.
func mayHaveFailed(kind, body []byte) bool {
	switch audit.RecordKind(kind) {
	case audit.Done, audit.Anchor, audit.Note, audit.Shield:
		return false
	}
	return !audit.EndsOK(body)
}

// encodeSplit is like encode. The records at the positions become a part of their own.
func (c *blockCodec) encodeSplit(records []ledger.Record, positions []int) ([]byte, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(positions) == 0 {
		return c.encodePart(nil, records)
	}
	var parts [2][]ledger.Record // of calls that failed, and the others
	head, next := binary.AppendUvarint([]byte{blockSplit}, uint64(len(positions))), 0
	for _, i := range positions {
		head = binary.AppendUvarint(head, uint64(i-next))
		parts[0], parts[1] = append(parts[0], records[i]), append(parts[1], records[next:i]...)
		next = i + 1
	}
	parts[1] = append(parts[1], records[next:]...)
	failed, err := c.encodePart(nil, parts[0])
	if err != nil {
		return nil, err
	}
	return c.encodePart(append(binary.AppendUvarint(head, uint64(len(failed))), failed...), parts[1])
}

// encodePart appends the encoding of records to b.
func (c *blockCodec) encodePart(to []byte, records []ledger.Record) ([]byte, error) {
	b := binary.AppendUvarint(append(c.plain[:0], blockPlain), uint64(len(records)))
	before := int64(0)
	for i := range records {
		r := &records[i]
		at := r.At.UnixMilli()
		kind, key, ok := headOf(r.Body)
		derived := ok && string(kind) == r.Kind && string(key) == r.Key
		if derived {
			b = binary.AppendVarint(append(b, keyInBody), at-before)
		} else {
			b = binary.AppendVarint(append(b, 0), at-before)
			b = append(binary.AppendUvarint(b, uint64(len(r.Kind))), r.Kind...)
			b = append(binary.AppendUvarint(b, uint64(len(r.Key))), r.Key...)
		}
		b = append(binary.AppendUvarint(b, uint64(len(r.Body))), r.Body...)
		before = at
	}
	for i := range records {
		b = append(b, records[i].Hash[:checkLen]...)
	}
	c.plain = b
	if cap(c.plain) > 4*blockBytes {
		c.plain = nil
	}
	if len(b) < minCompressed {
		return append(to, b...), nil
	}
	if c.encoder == nil {
		var err error
		if c.encoder, err = zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithEncoderConcurrency(1),
			zstd.WithLowerEncoderMem(true), zstd.WithWindowSize(blockBytes), zstd.WithEncoderCRC(true)); err != nil {
			return nil, err
		}
	}
	return c.encoder.EncodeAll(b[1:], append(to, blockZstd)), nil
}

// headOf returns the kind and the key with which a record's body begins, in the form in which package audit encodes
// them.
func headOf(body []byte) (kind, key []byte, ok bool) {
	rest, ok := bytes.CutPrefix(body, []byte(`{"id":"`))
	if !ok {
		return nil, nil, false
	}
	key, rest, ok = bytes.Cut(rest, []byte(`","kind":"`))
	if !ok {
		return nil, nil, false
	}
	kind, _, ok = bytes.Cut(rest, []byte(`"`))
	return kind, key, ok && !bytes.ContainsAny(key, `"\`) && bytes.IndexByte(kind, '\\') < 0
}

// A blockRecord is a record of a decoded block. Its texts share memory with the block.
type blockRecord struct {
	at         int64
	kind, key  []byte
	body, hash []byte // of the hash only the first bytes
}

// A blockBuffer is memory that decoding uses again.
type blockBuffer struct {
	plain   [2][]byte
	records [2][]blockRecord
	all     []blockRecord
}

// decode decodes the body of a block. The error is errBlock.
func (c *blockCodec) decode(body []byte) ([]blockRecord, error) {
	return c.decodeInto(new(blockBuffer), body, false)
}

// decodeInto is like decode. If failed is set, it may leave out records of calls that did not fail. The records are
// valid until the next call with the same buffer.
func (c *blockCodec) decodeInto(to *blockBuffer, body []byte, failed bool) ([]blockRecord, error) {
	s, err := parseSplit(body)
	if err != nil {
		return nil, err
	}
	if s.positions == nil {
		return c.decodePart(to, 0, body)
	}
	apart, err := c.decodePart(to, 0, s.failed)
	if err != nil || len(apart) != len(s.positions) {
		return nil, errBlock
	}
	if failed {
		return apart, nil
	}
	others, err := c.decodePart(to, 1, s.others)
	if err != nil || s.positions[len(s.positions)-1] >= len(apart)+len(others) {
		return nil, errBlock
	}
	all := to.all[:0]
	for i, at := range s.positions {
		n := at - len(all)
		all, others = append(append(all, others[:n]...), apart[i]), others[n:]
	}
	to.all = append(all, others...)
	return to.all, nil
}

// A splitBody is the body of a block with records of calls that failed in a part of their own.
type splitBody struct {
	positions      []int // in order; nil if the block is not split
	failed, others []byte
}

// parseSplit returns the parts of a block's body.
func parseSplit(body []byte) (s splitBody, err error) {
	if len(body) == 0 || body[0] != blockSplit {
		return s, nil
	}
	p := blockParser{b: body[1:]}
	n := p.number()
	if n == 0 || n > uint64(len(p.b)) {
		return s, errBlock
	}
	next := uint64(0)
	for range n {
		next += p.number()
		if p.failed || next > maxBlock {
			return s, errBlock
		}
		s.positions = append(s.positions, int(next))
		next++
	}
	s.failed = p.take(p.number())
	s.others = p.b
	if p.failed {
		return s, errBlock
	}
	return s, nil
}

// decodePart decodes a part of a block, with the memory that a buffer has for it.
func (c *blockCodec) decodePart(to *blockBuffer, part int, b []byte) ([]blockRecord, error) {
	if len(b) == 0 {
		return nil, errBlock
	}
	form, b := b[0], b[1:]
	switch form {
	case blockPlain:
	case blockZstd:
		d, err := c.zstdDecoder()
		if err != nil {
			return nil, err
		}
		if to.plain[part], err = d.DecodeAll(b, to.plain[part][:0]); err != nil {
			return nil, errBlock
		}
		b = to.plain[part]
	default:
		return nil, errBlock
	}
	var err error
	to.records[part], err = parseBlock(to.records[part], b)
	return to.records[part], err
}

// auditDecoders is how many blocks are unpacked at the same time.
const auditDecoders = 4

func (c *blockCodec) zstdDecoder() (*zstd.Decoder, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	var err error
	if c.decoder == nil {
		c.decoder, err = zstd.NewReader(nil, zstd.WithDecoderConcurrency(auditDecoders), zstd.WithDecoderMaxMemory(maxBlock))
	}
	return c.decoder, err
}

// close ends the goroutines of the codec.
func (c *blockCodec) close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.decoder != nil {
		c.decoder.Close()
	}
	c.decoder = nil
}

// parseBlock parses the records of an uncompressed block. It uses the memory of records.
func parseBlock(records []blockRecord, b []byte) ([]blockRecord, error) {
	p := blockParser{b: b}
	n := p.number()
	// A record has at least three bytes and its check.
	if p.failed || n == 0 || n > uint64(len(p.b))/(3+checkLen) {
		return nil, errBlock
	}
	records = slices.Grow(records[:0], int(n))[:n]
	clear(records)
	at := int64(0)
	for i := range records {
		r := &records[i]
		flags := p.take(1)
		at += p.signed()
		r.at = at
		if !p.failed && flags[0]&keyInBody == 0 {
			r.kind = p.take(p.number())
			r.key = p.take(p.number())
		}
		r.body = p.take(p.number())
		if p.failed {
			return nil, errBlock
		}
		if flags[0]&keyInBody != 0 {
			var ok bool
			if r.kind, r.key, ok = headOf(r.body); !ok {
				return nil, errBlock
			}
		}
	}
	for i := range records {
		records[i].hash = p.take(checkLen)
	}
	if p.failed || len(p.b) > 0 {
		return nil, errBlock
	}
	return records, nil
}

// A blockParser reads the parts of an uncompressed block. After an error, failed is set and its methods return zeros.
type blockParser struct {
	b      []byte
	failed bool
}

func (p *blockParser) number() uint64 {
	v, n := binary.Uvarint(p.b)
	if p.advance(n); p.failed {
		return 0
	}
	return v
}

func (p *blockParser) signed() int64 {
	v, n := binary.Varint(p.b)
	if p.advance(n); p.failed {
		return 0
	}
	return v
}

func (p *blockParser) advance(n int) {
	if n <= 0 || p.failed {
		p.failed = true
		return
	}
	p.b = p.b[n:]
}

func (p *blockParser) take(n uint64) []byte {
	if p.failed || n > uint64(len(p.b)) {
		p.failed = true
		return nil
	}
	t := p.b[:n:n]
	p.b = p.b[n:]
	return t
}

// maxIndexText is the maximum length of a list of servers or callers in a row. In place of a longer list the row has
// null, which stands for all.
const maxIndexText = 1024

// A blockIndex has the columns of a block by which records are found without reading the block.
type blockIndex struct {
	// failed is the number of calls that failed, or whose outcome is not in the block.
	failed int64
	// low and high are the lowest and the highest ID of the calls that are not late; empty without such calls.
	low, high string
	// servers and callers are the JSON of the distinct servers, and of the distinct principals and clients.
	servers, callers []byte
	// late are the keys outside the range from low to high: of calls that began in an earlier block, and of other
	// records.
	late []string
}

// indexBlock returns the index of the records. IDs of calls up to after are late.
func indexBlock(records []ledger.Record, after string) blockIndex {
	var x blockIndex
	open, late := map[string]bool{}, map[string]bool{}
	servers, callers := nameSet{seen: map[string]bool{}}, nameSet{seen: map[string]bool{}}
	for i := range records {
		r := &records[i]
		s, err := audit.Summarize(r.Body)
		if err != nil { // a record that an earlier release stored, and that was damaged since
			x.failed++
			servers.all, callers.all = true, true
		}
		servers.add(s.Server)
		callers.add(s.Principal)
		callers.add(s.Client)
		switch audit.RecordKind(r.Kind) {
		case audit.Call, audit.AdminAction:
			delete(open, r.Key)
			if s.Outcome == "" {
				open[r.Key] = true
			} else if s.Outcome.Failed() {
				x.failed++
			}
		case audit.Done:
			if open[r.Key] && s.Outcome.Failed() {
				x.failed++
			}
			delete(open, r.Key)
		}
		switch {
		case !isCallID(r.Key) || r.Key <= after:
			late[r.Key] = true
		case x.low == "":
			x.low, x.high = r.Key, r.Key
		default:
			x.low, x.high = min(x.low, r.Key), max(x.high, r.Key)
		}
	}
	x.failed += int64(len(open))
	x.servers, x.callers = servers.json(), callers.json()
	for key := range late {
		x.late = append(x.late, key)
	}
	slices.Sort(x.late)
	return x
}

// isCallID reports whether a key has the form of the IDs that package audit gives to calls.
func isCallID(key string) bool {
	if len(key) != 26 {
		return false
	}
	for i := range len(key) {
		if c := key[i]; (c < '0' || c > '9') && (c < 'A' || c > 'Z') {
			return false
		}
	}
	return true
}

// A nameSet collects distinct names, which are JSON strings.
type nameSet struct {
	seen map[string]bool
	all  bool
}

func (s *nameSet) add(name []byte) {
	if len(name) > 0 && !s.seen[string(name)] {
		s.seen[string(name)] = true
	}
}

func (s *nameSet) json() []byte {
	if len(s.seen) == 0 && !s.all {
		return []byte("[]")
	}
	names := make([][]byte, 0, len(s.seen))
	for name := range s.seen {
		names = append(names, []byte(name))
	}
	slices.SortFunc(names, bytes.Compare)
	text := append(append([]byte("["), bytes.Join(names, []byte(","))...), ']')
	if s.all || len(text) > maxIndexText {
		return []byte("null")
	}
	return text
}

// mayHave reports whether the names in a column include one that accept returns true for. It returns true if the column
// has no list.
func mayHave(column []byte, accept func(name string) bool) bool {
	if len(column) == 0 || column[0] != '[' {
		return true
	}
	for value := range rawjson.Elements(json.RawMessage(column)) {
		if text, ok := rawjson.DecodeString(value); !ok || accept(text) {
			return true
		}
	}
	return false
}

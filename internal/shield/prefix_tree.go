package shield

import "slices"

// A treeEntry is a text and its value. The text has 1 byte to 64 KiB, and the value is above 0.
type treeEntry struct {
	Text  string
	Value uint16
}

// A prefixTree finds the texts of a fixed list in a byte sequence. It is a radix tree. It is immutable and safe for
// concurrent use.
type prefixTree struct {
	nodes []treeNode
	// leads contains the first byte of each node's label, by which the parent finds the node. labels contains the
	// remaining bytes of all labels.
	leads, labels []byte
	first         [256]int32
}

// A treeNode is a node of a prefixTree. label and size are the position of its label in labels; kids and count are that
// of its children in nodes. value is the value of the entry that ends at the node, or 0.
type treeNode struct {
	label, kids        int32
	size, count, value uint16
}

// newPrefixTree returns a tree of entries, which must be sorted by text and have no duplicates. entries may be empty.
func newPrefixTree(entries []treeEntry) *prefixTree {
	most := 2*len(entries) + 1 // each node except the root ends an entry or has two children
	t := &prefixTree{nodes: make([]treeNode, 1, most), leads: make([]byte, 1, most)}
	if len(entries) == 0 {
		return t
	}
	type branch struct {
		of    []treeEntry
		depth int // length of the common prefix in bytes
	}
	branches := append(make([]branch, 0, most), branch{entries, 0})
	for n := 0; n < len(branches); n++ { // breadth first
		of, depth := branches[n].of, branches[n].depth
		size := 0 // the root has no label, even if all entries share a prefix
		if n > 0 {
			size = commonPrefixLen(of[0].Text, of[len(of)-1].Text)
		}
		here := treeNode{label: int32(len(t.labels)), size: uint16(size - depth), kids: int32(len(t.nodes))}
		t.labels = append(t.labels, of[0].Text[depth:size]...)
		if len(of[0].Text) == size {
			here.value = of[0].Value
			of = of[1:]
		}
		for len(of) > 0 {
			lead, same := of[0].Text[size], 1
			for same < len(of) && of[same].Text[size] == lead {
				same++
			}
			branches = append(branches, branch{of[:same], size + 1})
			t.nodes, t.leads = append(t.nodes, treeNode{}), append(t.leads, lead)
			here.count++
			of = of[same:]
		}
		t.nodes[n] = here
	}
	// The root's children follow it directly. The slices are copied to free unused capacity.
	for n := int32(1); n <= int32(t.nodes[0].count); n++ {
		t.first[t.leads[n]] = n
	}
	t.nodes, t.leads, t.labels = slices.Clone(t.nodes), slices.Clone(t.leads), slices.Clone(t.labels)
	return t
}

// commonPrefixLen returns the length of the common prefix of two texts, in bytes.
func commonPrefixLen(a, b string) int {
	n := 0
	for n < len(a) && n < len(b) && a[n] == b[n] {
		n++
	}
	return n
}

// A treePosition is a node of a tree and a number of bytes of its label. The zero value matches no entry.
type treePosition struct {
	node int32
	size uint16
}

// IsNone reports whether the bytes that led to this position are not the beginning of any entry.
func (s treePosition) IsNone() bool { return s.node == 0 }

// Begin returns the position after the first byte b of an entry.
func (t *prefixTree) Begin(b byte) treePosition { return treePosition{node: t.first[b]} }

// Next returns the position that is reached from at by the byte b. The position at must be of this tree.
func (t *prefixTree) Next(at treePosition, b byte) treePosition {
	n := &t.nodes[at.node]
	if at.size < n.size {
		if t.labels[n.label+int32(at.size)] != b {
			return treePosition{}
		}
		return treePosition{at.node, at.size + 1}
	}
	for i, lead := range t.leads[n.kids : n.kids+int32(n.count)] { // linear search is fastest for few children
		if lead == b {
			return treePosition{node: n.kids + int32(i)}
		}
	}
	return treePosition{}
}

// Value returns the value of the entry that ends at a position, or 0 if no entry ends there.
func (t *prefixTree) Value(at treePosition) uint16 {
	if n := &t.nodes[at.node]; at.size == n.size {
		return n.value
	}
	return 0
}

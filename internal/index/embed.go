package index

import (
	"context"
	"crypto/sha256"
)

// An EmbedRole is the role of a text to embed. Many models embed a question differently from a document that may
// answer it.
type EmbedRole uint8

// The roles of a text.
const (
	// RoleQuery is for a question, RoleDocument for a document.
	RoleQuery EmbedRole = iota + 1
	RoleDocument
)

// An Embedder turns texts into vectors that are near each other if the texts have a similar meaning. It may be used
// from several goroutines.
type Embedder interface {
	// Model returns the name of the vector space. Vectors of different names are never compared. The name is the same
	// in every process.
	Model() string
	// Embed returns a vector for each text, in the same order and all of the same dimension. The length of a vector
	// does not matter, because vectors are compared by cosine. An error means that there are no vectors.
	Embed(ctx context.Context, of EmbedRole, texts []string) ([][]float32, error)
}

// A TextKey identifies an embedded text: it is the SHA-256 hash of the text.
type TextKey [sha256.Size]byte

// TextKeyOf returns the key of a text.
func TextKeyOf(text string) TextKey { return sha256.Sum256([]byte(text)) }

// A Neighbor is a text near a question, with the cosine between the two vectors.
type Neighbor struct {
	Key    TextKey
	Cosine float32
}

// A VectorStore stores the vectors of texts by model and key, so that no process computes a vector twice. It may be
// used from several goroutines.
type VectorStore interface {
	// Get returns the stored vectors of the keys. Keys without a vector are missing in the result.
	Get(ctx context.Context, model string, keys []TextKey) (map[TextKey][]float32, error)
	// Put stores all the vectors or none. A vector that is already stored is not replaced.
	Put(ctx context.Context, model string, vectors map[TextKey][]float32) error
	// Nearest returns at most the given number of keys, the nearest to the question's vector first. Equally near keys
	// are in the order of the keys. Keys without a vector are left out.
	Nearest(ctx context.Context, model string, question []float32, most int, among []TextKey) ([]Neighbor, error)
}

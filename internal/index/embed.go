package index

import (
	"context"
	"crypto/sha256"
)

// An EmbedRole is the role of a text whose vector is computed. Many models compute the vector of a question
// differently from the vector of a document.
type EmbedRole uint8

// The roles of a text.
const (
	// RoleQuery is the role of a question, and RoleDocument the role of a document.
	RoleQuery EmbedRole = iota + 1
	RoleDocument
)

// An Embedder computes ("embeds") vectors of texts. Texts with similar meaning have vectors that are near each other.
// It is safe for concurrent use.
type Embedder interface {
	// Model returns the name of the model, and so of its vector space. Vectors of models with different names are
	// never compared. The name is the same in every process.
	Model() string
	// Embed returns a vector for each text, in the same order. All vectors have the same dimension. Their lengths are
	// arbitrary, because vectors are compared by the cosine of their angle. If Embed returns an error, it returns no
	// vectors.
	Embed(ctx context.Context, of EmbedRole, texts []string) ([][]float32, error)
}

// A TextKey identifies an embedded text: it is the SHA-256 hash of the text.
type TextKey [sha256.Size]byte

// TextKeyOf returns the key of a text.
func TextKeyOf(text string) TextKey { return sha256.Sum256([]byte(text)) }

// A Neighbor is a text near a question. Cosine is the cosine of the angle between their vectors.
type Neighbor struct {
	Key    TextKey
	Cosine float32
}

// A VectorStore stores the vectors of texts by model and key, so that a vector is computed only once. It is safe for
// concurrent use.
type VectorStore interface {
	// Get returns the stored vectors of the keys, by key. The result omits keys without a vector.
	Get(ctx context.Context, model string, keys []TextKey) (map[TextKey][]float32, error)
	// Put stores either all the vectors or none. It does not replace vectors that are already stored.
	Put(ctx context.Context, model string, vectors map[TextKey][]float32) error
	// Nearest returns at most most of the given keys: those whose vectors are nearest to the question's vector,
	// nearest first. Equally near keys are in the order of the keys. The result omits keys without a vector.
	Nearest(ctx context.Context, model string, question []float32, most int, among []TextKey) ([]Neighbor, error)
}

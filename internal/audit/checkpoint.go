package audit

import (
	"crypto/ed25519"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"time"
)

// A Checkpoint is somebody's word for how far a chain had come: whoever rewrites it afterwards would have to sign
// again.
type Checkpoint struct {
	Stream string
	// Seq is the place of the last record then, Hash its hash.
	Seq  uint64
	Hash [32]byte
	At   time.Time
	// Signer is the public key, Signature its Ed25519 signature of all above.
	Signer, Signature []byte
}

// signedBytes is what is signed: a line that says what this is, then Seq and the milliseconds of At since 1970 (eight
// bytes each, most significant first), Hash, and Stream.
func (c Checkpoint) signedBytes() []byte {
	text := []byte("drawbridge audit checkpoint 1\n")
	text = binary.BigEndian.AppendUint64(text, c.Seq)
	text = binary.BigEndian.AppendUint64(text, uint64(c.At.UnixMilli()))
	text = append(text, c.Hash[:]...)
	return append(text, c.Stream...)
}

// Sign returns the checkpoint with a signature.
func (c Checkpoint) Sign(key ed25519.PrivateKey) Checkpoint {
	c.Signer = key.Public().(ed25519.PublicKey)
	c.Signature = ed25519.Sign(key, c.signedBytes())
	return c
}

// Verify says why the signature is not that of the signer, or nil.
func (c Checkpoint) Verify() error {
	if len(c.Signer) != ed25519.PublicKeySize || !ed25519.Verify(c.Signer, c.signedBytes(), c.Signature) {
		return fmt.Errorf("checkpoint at record %d: its signature is not its signer's", c.Seq)
	}
	return nil
}

// ParsePublicKey reads a public key as [FormatPublicKey] writes it.
func ParsePublicKey(text string) (ed25519.PublicKey, error) {
	b, err := hex.DecodeString(text)
	if err != nil || len(b) != ed25519.PublicKeySize {
		return nil, errors.New("a public key is 64 hexadecimal digits")
	}
	return b, nil
}

// FormatPublicKey writes a public key for people.
func FormatPublicKey(key ed25519.PublicKey) string { return hex.EncodeToString(key) }

"""The model: an embedding and a small perceptron over a fixed context."""

import torch
from torch import nn


class CharacterModel(nn.Module):
    """Predict the next character from the ``context`` characters before it."""

    def __init__(self, vocabulary_size: int, context: int, width: int = 64) -> None:
        super().__init__()
        self.context = context
        self.embedding = nn.Embedding(vocabulary_size, width)
        self.layers = nn.Sequential(
            nn.Flatten(),
            nn.Linear(context * width, 4 * width),
            nn.GELU(),
            nn.Linear(4 * width, vocabulary_size),
        )

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        """Map a batch of contexts to a batch of scores."""
        return self.layers(self.embedding(tokens))


def sample_batch(tokens: torch.Tensor, size: int, context: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Draw random contexts and the character that follows each of them."""
    starts = torch.randint(len(tokens) - context, (size,))
    contexts = torch.stack([tokens[start : start + context] for start in starts.tolist()])
    return contexts, tokens[starts + context]


@torch.no_grad()
def generate(model: CharacterModel, prompt: torch.Tensor, length: int) -> list[int]:
    """Continue a prompt character by character."""
    tokens = [0] * model.context + prompt.tolist()
    for _ in range(length):
        window = torch.tensor([tokens[-model.context :]], device=model.embedding.weight.device)
        tokens.append(int(torch.multinomial(model(window).softmax(-1), 1)))
    return tokens[model.context :]

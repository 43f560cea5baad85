print(str(tools.wikipedia.search_wikipedia(query="convolutional neural network", limit=3))[:1500])
code = '''"""A small convolutional network for MNIST."""
import torch
from torch import nn
from torch.utils.data import DataLoader
from torchvision import datasets, transforms

model = nn.Sequential(
    nn.Conv2d(1, 16, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
    nn.Conv2d(16, 32, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
    nn.Flatten(), nn.Linear(32 * 7 * 7, 10),
)
data = DataLoader(datasets.MNIST("data", download=True, transform=transforms.ToTensor()), batch_size=64, shuffle=True)
optimizer = torch.optim.Adam(model.parameters())
loss_of = nn.CrossEntropyLoss()
for step, (images, labels) in enumerate(data):
    optimizer.zero_grad()
    loss = loss_of(model(images), labels)
    loss.backward()
    optimizer.step()
    if step % 100 == 0:
        print(step, loss.item())
'''
print(tools.filesystem.write_file(path="/root/code/cnn_example.py", content=code))

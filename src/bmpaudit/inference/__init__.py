"""One released model: who was in its training sample?"""
